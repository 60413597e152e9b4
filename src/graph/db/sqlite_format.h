// SQLite's file format, as far as tables are written and read page by page: https://www.sqlite.org/fileformat2.html
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

namespace msprobe {

// ---- The head of a file ----
inline constexpr char kSqlMagic[] = "SQLite format 3";  // with the zero byte at its end
inline constexpr size_t kSqlFileHead = 100;
/// Where the fields of the head are, in bytes.
inline constexpr size_t kSqlHeadPageBytes = 16, kSqlHeadReserved = 20, kSqlHeadChange = 24, kSqlHeadPages = 28,
                        kSqlHeadEncoding = 56, kSqlHeadValidFor = 92;
inline constexpr uint32_t kSqlUtf8 = 1;
inline constexpr uint32_t kSqlLeastPageBytes = 512, kSqlLeastUsable = 480;

// ---- The head of a page of a B-tree ----
/// Its first byte; of a leaf with kSqlLeaf added.
inline constexpr uint8_t kSqlIndexPage = 2, kSqlTablePage = 5, kSqlLeaf = 8;
inline constexpr size_t kSqlLeafHead = 8, kSqlInnerHead = 12;
/// Where its other fields are: the first free block, the number of cells, where their content begins, the last child.
inline constexpr size_t kSqlPageFree = 1, kSqlPageCells = 3, kSqlPageContent = 5, kSqlPageFragments = 7,
                        kSqlPageRight = 8;
/// Bytes of the number of a page, and of the place of a cell within its page.
inline constexpr size_t kSqlChildBytes = 4, kSqlPointerBytes = 2;

// ---- Payloads ----
/// How much of a payload is in its cell; the rest is in overflow pages. `usable`: bytes of a page, less the reserved
/// ones.
constexpr uint64_t SqlLocalBytes(uint64_t usable, bool table, uint64_t payload) {
  const uint64_t most = table ? usable - 35 : (usable - 12) * 64 / 255 - 23;
  if (payload <= most) return payload;
  const uint64_t least = (usable - 12) * 32 / 255 - 23;
  const uint64_t local = least + (payload - least) % (usable - kSqlChildBytes);
  return local <= most ? local : least;
}

// ---- Types of values in a record ----
inline constexpr uint64_t kSqlNull = 0, kSqlReal = 7, kSqlZero = 8, kSqlOne = 9, kSqlBlob = 12, kSqlText = 13;
/// Bytes of the values of the types 0 to 9.
inline constexpr std::array<uint8_t, 10> kSqlSizes{0, 1, 2, 3, 4, 6, 8, 8, 0, 0};

/// Bytes of a value of this type; none for what SQLite does not use yet.
constexpr std::optional<uint64_t> SqlSizeOf(uint64_t type) {
  if (type < kSqlSizes.size()) return kSqlSizes[type];
  if (type < kSqlBlob) return std::nullopt;
  return (type - kSqlBlob) / 2;
}

// ---- Numbers ----
/// SQLite's integers of 1 to 9 bytes: seven bits in each, all eight in the ninth.
inline constexpr size_t kMostVarint = 9;
size_t SqlVarintSize(uint64_t v);
/// Returns the byte behind it.
char* PutSqlVarint(char* out, uint64_t v);

/// Big-endian.
inline void PutSqlBig(char* out, uint32_t v, size_t bytes) {
  for (size_t i = 0; i < bytes; ++i) out[i] = static_cast<char>(v >> (8 * (bytes - 1 - i)));
}
template <typename Byte>
uint32_t GetSqlBig(const Byte* in, size_t bytes) {
  uint32_t v = 0;
  for (size_t i = 0; i < bytes; ++i) v = v << 8 | static_cast<uint8_t>(in[i]);
  return v;
}

}  // namespace msprobe
