#include "view/file/table_pages.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <deque>
#include <limits>
#include <optional>

#include "base/interrupt.h"
#include "graph/db/sqlite_format.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostDepth = 20;

// Bytes that are read from front to back, and never beyond their end.
struct Bytes {
  const uint8_t* at;
  const uint8_t* end;
  size_t left() const { return static_cast<size_t>(end - at); }

  bool Varint(uint64_t* out) {
    if (at < end && *at < 128) {
      *out = *at++;
      return true;
    }
    uint64_t value = 0;
    for (size_t i = 0; i < kMostVarint; ++i) {
      if (at == end) return false;
      const uint8_t byte = *at++;
      if (i + 1 == kMostVarint) {
        *out = value << 8 | byte;
        return true;
      }
      value = value << 7 | (byte & 127);
      if (byte < 128) break;
    }
    *out = value;
    return true;
  }
};

// A big-endian number of `size` bytes with its sign. `left`: how many may be read from `at` on, at least `size`.
uint64_t SignedBits(const uint8_t* at, uint64_t size, size_t left) {
  if (left >= 8 && size > 0) {  // in one load: a loop over few bytes, now one, now three, costs more than it reads
    uint64_t bits = 0;
    for (int i = 0; i < 8; ++i) bits = bits << 8 | at[i];
    return static_cast<uint64_t>(static_cast<int64_t>(bits) >> (64 - 8 * size));
  }
  uint64_t bits = size > 0 && (at[0] & 128) != 0 ? ~uint64_t{0} : 0;
  for (uint64_t i = 0; i < size; ++i) bits = bits << 8 | at[i];
  return bits;
}

void SetValue(uint64_t type, const uint8_t* at, uint64_t size, size_t left, SqlValue* out) {
  if (type == kSqlNull) {
    *out = {};
  } else if (type >= kSqlBlob) {
    out->Set(std::string_view(reinterpret_cast<const char*>(at), size));
  } else if (type >= kSqlZero) {
    out->Set(static_cast<int64_t>(type - kSqlZero));
  } else {
    const uint64_t bits = SignedBits(at, size, left);
    type == kSqlReal ? out->Set(std::bit_cast<double>(bits)) : out->Set(static_cast<int64_t>(bits));
  }
}

// The record in `local`, of which a part may lie elsewhere. Columns that are not whole in it, or not there, are
// refused.
bool ParseRecord(Bytes local, std::span<const int> columns, SqlValue* out) {
  const uint8_t* start = local.at;
  uint64_t head = 0;
  if (!local.Varint(&head) || head > static_cast<size_t>(local.end - start)) return false;
  Bytes types{local.at, start + head};
  const uint8_t* body = start + head;
  size_t wanted = 0;
  for (int column = 0; wanted < columns.size(); ++column) {
    uint64_t type = 0;
    if (types.at > types.end || !types.Varint(&type)) return false;
    const std::optional<uint64_t> known = SqlSizeOf(type);
    if (!known) return false;
    const uint64_t size = *known;
    if (size > static_cast<size_t>(local.end - body)) return false;
    if (column == columns[wanted]) SetValue(type, body, size, static_cast<size_t>(local.end - body), &out[wanted++]);
    body += size;
  }
  return true;
}

}  // namespace

void SqlValue::Set(double value) {
  kind = std::isnan(value) ? Kind::kNull : Kind::kNumber;  // as SQLite has it
  real = value;
  text = {};
  constexpr double kLimit = 9223372036854775808.0;
  integer = value >= kLimit   ? std::numeric_limits<int64_t>::max()
            : value > -kLimit ? static_cast<int64_t>(value)
                              : std::numeric_limits<int64_t>::min();
}

struct TablePages::Walk {
  const Range& range;
  const TakeSqlRow& take;
  int64_t* next;
  bool done = false;  // no further row is wanted
  uint32_t seen = 0;  // pages: a cycle would show more than there are
  Status status;
  std::deque<std::vector<uint8_t>> pages;  // the one looked at, by depth
  std::array<SqlValue, kMostColumns> values;
};

std::unique_ptr<const TablePages> TablePages::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (fd < 0) return nullptr;
  std::array<uint8_t, kSqlFileHead> head{};
  struct stat st {};
  const bool read = pread(fd, head.data(), head.size(), 0) == static_cast<ssize_t>(head.size()) && fstat(fd, &st) == 0;
  const uint32_t stored = GetSqlBig(&head[kSqlHeadPageBytes], 2), page = stored == 1 ? 65536 : stored;
  const bool utf8 = GetSqlBig(&head[kSqlHeadEncoding], 4) == kSqlUtf8;
  if (!read || std::memcmp(head.data(), kSqlMagic, sizeof(kSqlMagic)) != 0 || !utf8 || page < kSqlLeastPageBytes ||
      !std::has_single_bit(page) || page - head[kSqlHeadReserved] < kSqlLeastUsable) {
    close(fd);
    return nullptr;
  }
  const uint64_t pages = static_cast<uint64_t>(st.st_size) / page;
  return std::unique_ptr<const TablePages>(new TablePages(
      fd, page, page - head[kSqlHeadReserved], static_cast<uint32_t>(std::min<uint64_t>(pages, UINT32_MAX - 1))));
}

TablePages::~TablePages() { close(fd_); }

bool TablePages::ReadPage(uint32_t page, std::vector<uint8_t>* out) const {
  if (page < 2 || page > pages_) return false;  // the first one has a head of its own and is none of a table of ours
  out->resize(page_bytes_);
  return pread(fd_, out->data(), page_bytes_, static_cast<off_t>(page - 1) * page_bytes_) ==
         static_cast<ssize_t>(page_bytes_);
}

bool TablePages::VisitLeaf(Walk* walk, const uint8_t* page) const {
  const size_t cells = GetSqlBig(page + kSqlPageCells, 2);
  if (kSqlLeafHead + kSqlPointerBytes * cells > usable_) return false;
  for (size_t i = 0; i < cells && !walk->done; ++i) {
    const uint32_t at = GetSqlBig(page + kSqlLeafHead + kSqlPointerBytes * i, 2);
    if (at >= usable_) return false;
    Bytes cell{page + at, page + usable_};
    uint64_t size = 0, id = 0;
    if (!cell.Varint(&size) || !cell.Varint(&id)) return false;
    const auto row = static_cast<int64_t>(id);
    if (row < *walk->next) {
      if (row >= walk->range.first) return false;  // not in order
      continue;
    }
    if (row > walk->range.last) {
      walk->done = true;
      return true;
    }
    // What does not fit begins here and goes on in other pages.
    const uint64_t local = SqlLocalBytes(usable_, true, size);
    if (local > cell.left()) return false;
    cell.end = cell.at + local;
    if (!ParseRecord(cell, walk->range.columns, walk->values.data())) return false;
    walk->status = walk->take({row, {walk->values.data(), walk->range.columns.size()}});
    if (!walk->status.ok()) return false;
    walk->done = row == walk->range.last;
    *walk->next = walk->done ? row : row + 1;
  }
  return true;
}

bool TablePages::VisitInner(Walk* walk, const uint8_t* page, size_t depth) const {
  const size_t cells = GetSqlBig(page + kSqlPageCells, 2);
  if (kSqlInnerHead + kSqlPointerBytes * cells > usable_) return false;
  for (size_t i = 0; i < cells && !walk->done; ++i) {
    const uint32_t at = GetSqlBig(page + kSqlInnerHead + kSqlPointerBytes * i, 2);
    if (at + kSqlChildBytes > usable_) return false;
    Bytes key{page + at + kSqlChildBytes, page + usable_};
    uint64_t largest = 0;
    if (!key.Varint(&largest)) return false;
    if (static_cast<int64_t>(largest) < walk->range.first) continue;
    if (!Visit(walk, GetSqlBig(page + at, kSqlChildBytes), depth + 1)) return false;
  }
  return walk->done || Visit(walk, GetSqlBig(page + kSqlPageRight, kSqlChildBytes), depth + 1);
}

bool TablePages::Visit(Walk* walk, uint32_t page, size_t depth) const {
  if (depth >= kMostDepth || ++walk->seen > pages_) return false;
  if (InterruptRequested()) {  // a large file that is not in memory takes many seconds
    walk->status = Interrupted();
    return false;
  }
  if (walk->pages.size() <= depth) walk->pages.resize(depth + 1);
  std::vector<uint8_t>& bytes = walk->pages[depth];
  if (!ReadPage(page, &bytes)) return false;
  if (bytes[0] == (kSqlTablePage | kSqlLeaf)) return VisitLeaf(walk, bytes.data());
  return bytes[0] == kSqlTablePage && VisitInner(walk, bytes.data(), depth);
}

StatusOr<bool> TablePages::Read(const Range& range, const TakeSqlRow& take, int64_t* next) const {
  *next = range.first;
  if (range.last < range.first) return true;
  if (range.columns.size() > kMostColumns) return false;
  Walk walk{range, take, next, false, 0, OkStatus(), {}, {}};
  const bool read = Visit(&walk, range.root, 0);
  MSP_RETURN_IF_ERROR(walk.status);
  return read;
}

}  // namespace msprobe::view
