#include "tensor/files/zip_reader.h"

#include <algorithm>
#include <cstring>

#include "base/message.h"

namespace msprobe {
namespace {

constexpr size_t kEnd = 22, kEnd64 = 56, kLocator = 20, kEntry = 46, kLocal = 30;
constexpr size_t kMostComment = 65535;
constexpr uint32_t kMost32 = 0xffffffffu;

template <typename T>
T At(std::string_view s, size_t offset) {
  T v;
  std::memcpy(&v, s.data() + offset, sizeof v);
  return v;
}

bool Has(std::string_view s, uint64_t offset, uint64_t bytes) {
  return offset <= s.size() && bytes <= s.size() - offset;
}

struct Directory {
  uint64_t offset = 0, size = 0, members = 0;
};

bool FindDirectory(std::string_view file, Directory* out) {
  if (file.size() < kEnd) return false;
  const size_t last = file.size() - kEnd;
  const size_t first = last - std::min(last, kMostComment);
  for (size_t at = last + 1; at-- > first;) {
    if (At<uint32_t>(file, at) != 0x06054b50u || At<uint16_t>(file, at + 20) != file.size() - at - kEnd) continue;
    *out = {At<uint32_t>(file, at + 16), At<uint32_t>(file, at + 12), At<uint16_t>(file, at + 10)};
    if (at < kLocator || At<uint32_t>(file, at - kLocator) != 0x07064b50u) return true;
    const auto end64 = At<uint64_t>(file, at - kLocator + 8);
    if (!Has(file, end64, kEnd64) || At<uint32_t>(file, end64) != 0x06064b50u) return false;
    *out = {At<uint64_t>(file, end64 + 48), At<uint64_t>(file, end64 + 40), At<uint64_t>(file, end64 + 32)};
    return true;
  }
  return false;
}

// Fields that did not fit into 32 bits stand, in this order, in the entry's extra field number 1.
bool TakeLarge(std::string_view extra, uint64_t* size, uint64_t* packed, uint64_t* offset) {
  while (extra.size() >= 4) {
    const auto id = At<uint16_t>(extra, 0), length = At<uint16_t>(extra, 2);
    if (length > extra.size() - 4) return false;
    std::string_view field = extra.substr(4, length);
    extra.remove_prefix(4u + length);
    if (id != 1) continue;
    for (uint64_t* value : {size, packed, offset}) {
      if (*value != kMost32) continue;
      if (field.size() < 8) return false;
      *value = At<uint64_t>(field, 0);
      field.remove_prefix(8);
    }
    return true;
  }
  return true;
}

/// Where the header and the bytes of a member lie.
struct Stretch {
  uint64_t begin = 0, end = 0;
};

/// Members that share bytes are a trick: no archiver writes them.
bool Overlap(std::vector<Stretch>* stretches) {
  std::sort(stretches->begin(), stretches->end(), [](const Stretch& a, const Stretch& b) { return a.begin < b.begin; });
  for (size_t i = 1; i < stretches->size(); ++i) {
    if ((*stretches)[i].begin < (*stretches)[i - 1].end) return true;
  }
  return false;
}

}  // namespace

StatusOr<std::vector<ZipMember>> ReadZip(std::string_view file, const std::string& path) {
  const auto broken = [&](const std::string& what) {
    return BadInput(
        Msg("{} is not a whole zip archive ({}): it was probably cut short; write it again", path, KnownText(what)));
  };
  Directory directory;
  if (!FindDirectory(file, &directory)) return broken("its directory is missing");
  if (!Has(file, directory.offset, directory.size)) return broken("its directory lies outside");
  std::string_view rest = file.substr(directory.offset, directory.size);
  if (directory.members > rest.size() / kEntry) return broken("its directory is too short");
  std::vector<ZipMember> members;
  members.reserve(directory.members);
  std::vector<Stretch> stretches;
  for (uint64_t i = 0; i < directory.members; ++i) {
    if (rest.size() < kEntry || At<uint32_t>(rest, 0) != 0x02014b50u) return broken("an entry is damaged");
    const auto flags = At<uint16_t>(rest, 8), method = At<uint16_t>(rest, 10);
    const size_t name = At<uint16_t>(rest, 28), extra = At<uint16_t>(rest, 30), comment = At<uint16_t>(rest, 32);
    uint64_t packed = At<uint32_t>(rest, 20), size = At<uint32_t>(rest, 24), offset = At<uint32_t>(rest, 42);
    if (rest.size() < kEntry + name + extra + comment) return broken("an entry is cut off");
    ZipMember member;
    member.crc = At<uint32_t>(rest, 16);
    member.name = rest.substr(kEntry, name);
    if (!TakeLarge(rest.substr(kEntry + name, extra), &size, &packed, &offset)) return broken("an entry is damaged");
    if (method != 0 || (flags & 1) != 0 || packed != size) {
      return BadInput(Msg("{} has compressed or encrypted members: save it with torch.save()", path));
    }
    if (!Has(file, offset, kLocal) || At<uint32_t>(file, offset) != 0x04034b50u) return broken("a member is missing");
    const uint64_t begin = offset + kLocal + At<uint16_t>(file, offset + 26) + At<uint16_t>(file, offset + 28);
    if (!Has(file, begin, size)) return broken("a member is cut off");
    if (begin + size > directory.offset) return broken("a member overlaps the directory");
    member.bytes = file.substr(begin, size);
    stretches.push_back({offset, begin + size});
    members.push_back(member);
    rest.remove_prefix(kEntry + name + extra + comment);
  }
  if (Overlap(&stretches)) return broken("two members overlap");
  return members;
}

}  // namespace msprobe
