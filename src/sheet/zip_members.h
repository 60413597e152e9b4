// Members of a compressed zip archive, unpacked piece by piece.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct PackedMember {
  std::string_view name, bytes;  // as they stand in the archive
  uint64_t size = 0;             // unpacked
  uint32_t crc = 0;
  bool deflated = false;
};

/// What an archive may hold.
struct ZipRules {
  std::string_view kind = "a workbook";  // that error texts call it
  size_t most_members = 10'000;
  bool names_once = true;  // else the last member of a name counts, as for Python
};

/// The directory of an archive: members within it that do not overlap, stored or deflated, not encrypted, and of a size
/// that their bytes can hold. `path` is for error texts.
StatusOr<std::vector<PackedMember>> ListZip(std::string_view file, const std::string& path, ZipRules rules = {});

/// Unpacks `member` in pieces of at most 64 KB; what it gives is exactly as long as the directory says, and its
/// checksum is right.
Status Unpack(const PackedMember& member, const std::string& path, const std::function<Status(std::string_view)>& take);

/// The whole of a member that is at most `most` bytes long.
StatusOr<std::string> UnpackWhole(const PackedMember& member, const std::string& path, uint64_t most);

}  // namespace msprobe
