#include "sheet/zip_members.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr size_t kPiece = 64 << 10;
constexpr uint64_t kMostRatio = 1032;  // of deflate; more cannot be honest
constexpr uint32_t kInZip64 = 0xFFFFFFFF;

/// Little-endian numbers; the caller has checked that they are there.
template <typename T>
T At(std::string_view bytes, size_t pos) {
  T out = 0;
  std::memcpy(&out, bytes.data() + pos, sizeof out);
  return out;
}

class Directory {
 public:
  Directory(std::string_view file, const std::string& path, const ZipRules& rules)
      : file_(file), path_(path), rules_(rules) {}

  StatusOr<std::vector<PackedMember>> Read() {
    uint64_t at = 0, count = 0;
    MSP_RETURN_IF_ERROR(FindStart(&at, &count));
    if (count > rules_.most_members) return Bad(Msg("{} has too many members", path_));
    std::vector<PackedMember> out;
    std::unordered_map<std::string_view, size_t> names;
    for (uint64_t i = 0; i < count; ++i) {
      PackedMember member;
      MSP_RETURN_IF_ERROR(ReadEntry(&at, &member));
      const auto [place, fresh] = names.emplace(member.name, out.size());
      if (!fresh && rules_.names_once) return Bad(Msg("{} has two members of one name", path_));
      if (fresh) {
        out.push_back(member);
      } else {
        out[place->second] = member;
      }
    }
    std::vector<std::string_view> parts;
    for (const PackedMember& m : out) {
      if (!m.bytes.empty()) parts.push_back(m.bytes);
    }
    std::sort(parts.begin(), parts.end(), [](auto a, auto b) { return a.data() < b.data(); });
    for (size_t i = 1; i < parts.size(); ++i) {
      if (parts[i - 1].data() + parts[i - 1].size() > parts[i].data())
        return Bad(Msg("{} has members that overlap", path_));
    }
    return out;
  }

 private:
  Status Bad(const Message& what) const {
    return BadInput(Msg("{}: it is not {} to read", what, KnownText(rules_.kind)));
  }
  bool Has(uint64_t pos, uint64_t size) const { return pos <= file_.size() && file_.size() - pos >= size; }

  Status FindStart(uint64_t* at, uint64_t* count) {
    const size_t tail = file_.size() - std::min<size_t>(file_.size(), 65'557);  // the longest comment
    const size_t end = file_.rfind("PK\5\6");
    if (end == std::string_view::npos || end < tail || !Has(end, 22))
      return Bad(Msg("{} is not a zip archive, or is cut short", path_));
    *count = At<uint16_t>(file_, end + 10);
    *at = At<uint32_t>(file_, end + 16);
    if (*at != kInZip64 && *count != 0xFFFF) return OkStatus();
    if (end < 20 || file_.substr(end - 20, 4) != "PK\6\7") return Bad(Msg("{} has no zip64 directory", path_));
    const uint64_t end64 = At<uint64_t>(file_, end - 12);
    if (!Has(end64, 56) || file_.substr(end64, 4) != "PK\6\6") return Bad(Msg("{} has no zip64 directory", path_));
    *count = At<uint64_t>(file_, end64 + 32);
    *at = At<uint64_t>(file_, end64 + 48);
    return OkStatus();
  }

  /// Numbers that do not fit 32 bits stand in an extra field, in this order.
  static void FromZip64(std::string_view extra, std::initializer_list<uint64_t*> numbers) {
    while (extra.size() >= 4) {
      const size_t size = std::min<size_t>(At<uint16_t>(extra, 2), extra.size() - 4);
      if (At<uint16_t>(extra, 0) == 1) {
        size_t at = 4;
        for (uint64_t* number : numbers) {
          if (*number != kInZip64) continue;
          if (at + 8 > size + 4) return;
          *number = At<uint64_t>(extra, at);
          at += 8;
        }
        return;
      }
      extra.remove_prefix(size + 4);
    }
  }

  Status ReadEntry(uint64_t* at, PackedMember* out) {
    if (!Has(*at, 46) || file_.substr(*at, 4) != "PK\1\2") return Bad(Msg("{} has a damaged directory", path_));
    const uint16_t flags = At<uint16_t>(file_, *at + 8), method = At<uint16_t>(file_, *at + 10);
    uint64_t packed = At<uint32_t>(file_, *at + 20), offset = At<uint32_t>(file_, *at + 42);
    const uint64_t name_size = At<uint16_t>(file_, *at + 28), extra_size = At<uint16_t>(file_, *at + 30);
    out->crc = At<uint32_t>(file_, *at + 16);
    out->size = At<uint32_t>(file_, *at + 24);
    if (!Has(*at + 46, name_size + extra_size)) return Bad(Msg("{} has a damaged directory", path_));
    out->name = file_.substr(*at + 46, name_size);
    FromZip64(file_.substr(*at + 46 + name_size, extra_size), {&out->size, &packed, &offset});
    *at += 46 + name_size + extra_size + At<uint16_t>(file_, *at + 32);
    if (flags & 1) return Bad(Msg("{} is encrypted", path_));
    if (method != 0 && method != 8) return Bad(Msg("{} is packed in a way that is not read", path_));
    out->deflated = method == 8;
    if (!Has(offset, 30) || file_.substr(offset, 4) != "PK\3\4")
      return Bad(Msg("{} has a member outside of the file", path_));
    const uint64_t begin = offset + 30 + At<uint16_t>(file_, offset + 26) + At<uint16_t>(file_, offset + 28);
    if (!Has(begin, packed)) return Bad(Msg("{} has a member outside of the file", path_));
    out->bytes = file_.substr(begin, packed);
    const uint64_t most = out->deflated ? packed * kMostRatio + 64 : packed;
    if (packed > file_.size() || out->size > most || (!out->deflated && out->size != packed)) {
      return Bad(Msg("{} has a member that cannot be as long as it says", path_));
    }
    return OkStatus();
  }

  std::string_view file_;
  const std::string& path_;
  const ZipRules rules_;
};

struct Inflater {
  z_stream stream{};
  bool open = false;
  ~Inflater() {
    if (open) inflateEnd(&stream);
  }
};

}  // namespace

StatusOr<std::vector<PackedMember>> ListZip(std::string_view file, const std::string& path, ZipRules rules) {
  return Directory(file, path, rules).Read();
}

StatusOr<std::string> UnpackWhole(const PackedMember& member, const std::string& path, uint64_t most) {
  if (member.size > most) {
    return BadInput(Msg("{}: the member {} has {} bytes, more than the {} MiB that are read of one", path,
                        OneLine(member.name), member.size, most >> 20));
  }
  std::string out;
  MSP_RETURN_IF_ERROR(Unpack(member, path, [&](std::string_view piece) {
    out += piece;
    return OkStatus();
  }));
  return out;
}

Status Unpack(const PackedMember& member, const std::string& path,
              const std::function<Status(std::string_view)>& take) {
  const auto bad = [&](const Message& what) {
    return BadInput(Msg("{}: the member {}; copy the file again", path, what));
  };
  uLong crc = 0;
  const auto give = [&](std::string_view piece) {
    crc = crc32_z(crc, reinterpret_cast<const Bytef*>(piece.data()), piece.size());
    return take(piece);
  };
  if (!member.deflated) {
    for (size_t at = 0; at < member.bytes.size(); at += kPiece) {
      MSP_RETURN_IF_ERROR(give(member.bytes.substr(at, kPiece)));
    }
    return crc == member.crc ? OkStatus() : bad(Msg("{} has a wrong checksum", OneLine(member.name)));
  }
  Inflater inflater;
  if (inflateInit2(&inflater.stream, -MAX_WBITS) != Z_OK)
    return InternalError(Msg("cannot unpack {}: no memory", path));
  inflater.open = true;
  std::string piece(kPiece, '\0');
  std::string_view left = member.bytes;
  uint64_t given = 0;
  for (int state = Z_OK; state != Z_STREAM_END;) {
    z_stream& s = inflater.stream;
    if (s.avail_in == 0) {
      const std::string_view next = left.substr(0, 1 << 20);
      left.remove_prefix(next.size());
      s.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(next.data()));
      s.avail_in = static_cast<uInt>(next.size());
    }
    s.next_out = reinterpret_cast<Bytef*>(piece.data());
    s.avail_out = static_cast<uInt>(piece.size());
    state = inflate(&s, Z_NO_FLUSH);
    if (state != Z_OK && state != Z_STREAM_END) return bad(Msg("{} cannot be unpacked", OneLine(member.name)));
    const size_t made = piece.size() - s.avail_out;
    given += made;
    if (given > member.size) return bad(Msg("{} is longer than it says", OneLine(member.name)));
    if (made > 0) MSP_RETURN_IF_ERROR(give(std::string_view(piece).substr(0, made)));
    if (made == 0 && state == Z_OK && s.avail_in == 0 && left.empty())
      return bad(Msg("{} is cut short", OneLine(member.name)));
  }
  if (given != member.size) return bad(Msg("{} is shorter than it says", OneLine(member.name)));
  return crc == member.crc ? OkStatus() : bad(Msg("{} has a wrong checksum", OneLine(member.name)));
}

}  // namespace msprobe
