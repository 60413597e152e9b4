#include "sheet/workbook_check.h"

#include <sys/statvfs.h>

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <string_view>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"

namespace msprobe {
namespace {

constexpr std::string_view kSheet = "xl/worksheets/sheet";
constexpr uint32_t kInExtra = 0xFFFFFFFF;

/// Little-endian numbers at a position; zero behind the end.
template <typename T>
T NumberAt(std::string_view bytes, size_t pos) {
  T out = 0;
  if (pos <= bytes.size() && bytes.size() - pos >= sizeof out) std::memcpy(&out, bytes.data() + pos, sizeof out);
  return out;
}

/// Size of an entry that does not fit 32 bits: the first number of the extra field with id 1.
uint64_t Zip64Size(std::string_view extra) {
  while (extra.size() >= 12) {
    const size_t size = NumberAt<uint16_t>(extra, 2);
    if (NumberAt<uint16_t>(extra, 0) == 1) return NumberAt<uint64_t>(extra, 4);
    extra.remove_prefix(std::min(extra.size(), size + 4));
  }
  return 0;
}

}  // namespace

StatusOr<std::vector<uint64_t>> SheetSizes(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view zip = file.text();
  const size_t end = zip.rfind("PK\5\6");
  if (end == std::string_view::npos) return InternalError(Msg("{} has no end: free some space and try again", path));
  uint64_t at = NumberAt<uint32_t>(zip, end + 16);
  if (at == kInExtra && end >= 20) at = NumberAt<uint64_t>(zip, NumberAt<uint64_t>(zip, end - 12) + 48);
  std::vector<uint64_t> sizes;
  while (at <= zip.size() && zip.substr(at, 4) == "PK\1\2") {
    const size_t name_size = NumberAt<uint16_t>(zip, at + 28), extra_size = NumberAt<uint16_t>(zip, at + 30);
    const std::string_view rest = zip.substr(std::min<uint64_t>(at + 46, zip.size()));
    const std::string_view name = rest.substr(0, name_size);
    if (StartsWith(name, kSheet)) {
      const uint32_t size = NumberAt<uint32_t>(zip, at + 24);
      sizes.push_back(size == kInExtra ? Zip64Size(rest.substr(std::min(name_size, rest.size()), extra_size)) : size);
    }
    at += 46 + name_size + extra_size + NumberAt<uint16_t>(zip, at + 32);
  }
  return sizes;
}

WorkbookCheck::WorkbookCheck(const XlsxLibrary& library, const std::string& path)
    : library_(library), path_(path), directory_(DirName(path)) {}

Status WorkbookCheck::NoSpace() const {
  return InternalError(
      Msg("{} could not be written (the disk is full): free some space or choose another directory with -o", path_));
}

Status WorkbookCheck::Look(const lxw_worksheet* sheet) const {
  const FILE* rows = sheet && library_.same_version ? sheet->optimize_tmpfile : nullptr;
  return rows && std::ferror(const_cast<FILE*>(rows)) ? NoSpace() : OkStatus();
}

Status WorkbookCheck::EndSheet(lxw_worksheet* sheet) {
  FILE* rows = sheet && library_.same_version ? sheet->optimize_tmpfile : nullptr;
  if (!rows) return OkStatus();
  if (std::fflush(rows) != 0 || std::ferror(rows)) return NoSpace();
  sheet_bytes_.push_back(static_cast<uint64_t>(std::max<off_t>(ftello(rows), 0)));
  return OkStatus();
}

// Each sheet is copied once before it is packed.
Status WorkbookCheck::BeforeClose() const {
  struct statvfs fs {};
  if (sheet_bytes_.empty() || statvfs(directory_.empty() ? "." : directory_.c_str(), &fs) != 0) return OkStatus();
  const uint64_t largest = *std::max_element(sheet_bytes_.begin(), sheet_bytes_.end());
  return uint64_t{fs.f_bavail} * fs.f_frsize < largest + largest / 8 ? NoSpace() : OkStatus();
}

Status WorkbookCheck::AfterClose(const std::string& file) const {
  if (!library_.same_version) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const std::vector<uint64_t> sizes, SheetSizes(file));
  for (size_t i = 0; i < sheet_bytes_.size(); ++i) {
    if (i >= sizes.size() || sizes[i] <= sheet_bytes_[i]) return NoSpace();
  }
  return OkStatus();
}

}  // namespace msprobe
