#include "sheet/zip_writer.h"

#include <zlib.h>

#include "base/file.h"
#include "base/message.h"

namespace msprobe {
namespace {

constexpr uint32_t kFirstDay = 0x21 << 16;     // 1980-01-01 00:00 in DOS's count
constexpr uint32_t kOwnerReads = 0600u << 16;  // mode of a file, as Python's zipfile sets it
constexpr uint64_t kMostBytes = 0xF0000000;    // of an archive without zip64

void AppendLittle(std::string* out, uint32_t value, int bytes) {
  for (int i = 0; i < bytes; ++i) out->push_back(static_cast<char>(value >> (8 * i)));
}

StatusOr<std::string> DeflateRaw(const std::string& bytes) {
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    return InternalError(Msg("out of memory"));
  }
  std::string out(deflateBound(&stream, static_cast<uLong>(bytes.size())), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(bytes.data()));
  stream.avail_in = static_cast<uInt>(bytes.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  const int state = deflate(&stream, Z_FINISH);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return state == Z_STREAM_END ? StatusOr<std::string>(std::move(out)) : InternalError(Msg("out of memory"));
}

}  // namespace

Status WriteZip(const std::string& path, const std::vector<ZipEntry>& entries) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  std::string directory;
  uint64_t at = 0;  // bytes so far
  for (const ZipEntry& entry : entries) {
    if (entry.bytes.size() + at > kMostBytes || entry.name.size() > 0xFFFF || entries.size() > 0xFFFE) {
      return BadInput(Msg("{} would be larger than a plain zip archive can be: pack fewer files", path));
    }
    MSP_ASSIGN_OR_RETURN(const std::string packed, DeflateRaw(entry.bytes));
    const auto crc =
        static_cast<uint32_t>(crc32_z(0, reinterpret_cast<const Bytef*>(entry.bytes.data()), entry.bytes.size()));
    std::string common;
    AppendLittle(&common, 20, 2);     // version that reads it
    AppendLittle(&common, 0x800, 2);  // names are UTF-8
    AppendLittle(&common, 8, 2);      // deflated
    AppendLittle(&common, kFirstDay, 4);
    AppendLittle(&common, crc, 4);
    AppendLittle(&common, static_cast<uint32_t>(packed.size()), 4);
    AppendLittle(&common, static_cast<uint32_t>(entry.bytes.size()), 4);
    AppendLittle(&common, static_cast<uint32_t>(entry.name.size()), 2);
    AppendLittle(&common, 0, 2);
    directory += "PK\1\2";
    AppendLittle(&directory, 0x0314, 2);  // made under Unix
    directory += common;
    AppendLittle(&directory, 0, 2);
    AppendLittle(&directory, 0, 2);
    AppendLittle(&directory, 0, 2);
    AppendLittle(&directory, kOwnerReads, 4);
    AppendLittle(&directory, static_cast<uint32_t>(at), 4);
    directory += entry.name;
    at += 4 + common.size() + entry.name.size() + packed.size();
    MSP_RETURN_IF_ERROR(file.Write("PK\3\4" + common + entry.name));
    MSP_RETURN_IF_ERROR(file.Write(packed));
  }
  std::string end = "PK\5\6";
  AppendLittle(&end, 0, 4);
  AppendLittle(&end, static_cast<uint32_t>(entries.size()), 2);
  AppendLittle(&end, static_cast<uint32_t>(entries.size()), 2);
  AppendLittle(&end, static_cast<uint32_t>(directory.size()), 4);
  AppendLittle(&end, static_cast<uint32_t>(at), 4);
  AppendLittle(&end, 0, 2);
  MSP_RETURN_IF_ERROR(file.Write(directory));
  MSP_RETURN_IF_ERROR(file.Write(end));
  return file.Commit();
}

}  // namespace msprobe
