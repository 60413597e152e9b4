// Event files of TensorBoard with scalars: records of protocol buffers, each with checksums of CRC-32C.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/status.h"

namespace msprobe {

/// CRC-32 with Castagnoli's polynomial.
uint32_t Crc32C(std::string_view bytes);

class EventFile {
 public:
  EventFile() = default;
  EventFile(EventFile&& o) noexcept;
  EventFile& operator=(EventFile&&) = delete;
  ~EventFile();

  /// Makes "events.out.tfevents.{seconds}.{host}.{pid}" in the directory.
  static StatusOr<EventFile> Create(const std::string& directory);

  void AddScalar(std::string_view tag, int64_t step, double value);
  Status Flush();

 private:
  void AddRecord(std::string_view event);

  int fd_ = -1;
  std::string path_, pending_;
};

}  // namespace msprobe
