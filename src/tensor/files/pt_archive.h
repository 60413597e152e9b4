// What files of torch.save() are made of: a zip archive of stored members whose bytes are aligned to 64, and a pickle
// that names nothing but torch's own tensor and storage types.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "tensor/kernels/stats.h"

namespace msprobe {

/// A tensor in C order whose elements are the archive's member "data/KEY".
struct PickledTensor {
  DType dtype;
  std::span<const int64_t> shape;
  uint64_t count;
  std::string_view key;
};
/// In protocol 2, as torch.save() writes it: types without a storage class of their own as bytes and a name.
void AppendPickledTensor(const PickledTensor& tensor, std::string* out);
void AppendPickledText(std::string_view text, std::string* out);

/// The archive as it is written, front to back.
class PtArchive {
 public:
  /// `stem` is the directory of all members, as torch.save() takes it from the file name.
  explicit PtArchive(std::string stem) : stem_(std::move(stem)) {}

  /// The pickle and the members that torch.save() puts beside it.
  std::string Start(std::string_view pickle);
  /// What stands before a member's `size` bytes. Where their checksum is not known yet, Behind() follows them.
  std::string Before(std::string_view name, uint64_t size, std::optional<uint32_t> crc);
  std::string Behind(uint32_t crc);
  /// The last members and the directory.
  std::string Finish();

 private:
  struct Open {
    std::string name;
    uint64_t offset, size;
  };
  std::string Member(std::string_view name, std::string_view text);
  void List(const Open& member, uint32_t crc);

  std::string stem_, directory_;
  uint64_t at_ = 0, members_ = 0;
  std::optional<Open> open_;
};

}  // namespace msprobe
