// The directory of a zip archive whose members are stored as they are, which is how torch.save() packs tensors.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct ZipMember {
  std::string_view name, bytes;
  uint32_t crc = 0;
};

/// Members of the archive `file`, all within it; `path` is for error texts. Refuses what is compressed or encrypted.
StatusOr<std::vector<ZipMember>> ReadZip(std::string_view file, const std::string& path);

}  // namespace msprobe
