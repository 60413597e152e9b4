#include "graph/db/sql_record.h"

#include <bit>
#include <cmath>

namespace msprobe {

size_t SqlVarintSize(uint64_t v) {
  size_t size = 1;
  while (size < kMostVarint && v >> (7 * size) != 0) ++size;
  return size;
}

char* PutSqlVarint(char* out, uint64_t v) {
  if (v < 128) {
    *out = static_cast<char>(v);
    return out + 1;
  }
  const size_t size = SqlVarintSize(v);
  char* p = out + size;
  if (size == kMostVarint) {  // the ninth byte has all its bits
    *--p = static_cast<char>(v);
    v >>= 8;
  } else {
    *--p = static_cast<char>(v & 127);
    v >>= 7;
  }
  while (p > out) {
    *--p = static_cast<char>(v | 128);
    v >>= 7;
  }
  return out + size;
}

void SqlRecord::Type(uint64_t type) {
  if (type < 128) {
    types_ += static_cast<char>(type);
    return;
  }
  std::array<char, kMostVarint> bytes{};
  types_.append(bytes.data(), PutSqlVarint(bytes.data(), type));
}

void SqlRecord::Int(int64_t v) {
  if (v == 0 || v == 1) {
    types_ += static_cast<char>(v == 0 ? kSqlZero : kSqlOne);
    return;
  }
  for (uint64_t type = 1; type < kSqlReal; ++type) {
    const int bytes = kSqlSizes[type];
    const int64_t above = v >> (8 * bytes - 1);
    if (above != 0 && above != -1) continue;
    types_ += static_cast<char>(type);
    for (int shift = 8 * (bytes - 1); shift >= 0; shift -= 8) body_ += static_cast<char>(v >> shift);
    return;
  }
}

void SqlRecord::Real(double v) {
  constexpr double kMostWhole = 140737488355328;  // 2^47
  if (std::isnan(v)) return Null();
  if (std::fabs(v) < kMostWhole && v == std::trunc(v)) return Int(static_cast<int64_t>(v));
  types_ += static_cast<char>(kSqlReal);
  const auto bits = std::bit_cast<uint64_t>(v);
  for (int shift = 56; shift >= 0; shift -= 8) body_ += static_cast<char>(bits >> shift);
}

std::span<const std::string_view> SqlRecord::Parts() {
  // The size counts itself.
  uint64_t size = types_.size() + 1;
  while (types_.size() + SqlVarintSize(size) > size) ++size;
  const char* const end = PutSqlVarint(size_.data(), size);
  parts_[0] = {size_.data(), static_cast<size_t>(end - size_.data())};
  parts_[1] = types_;
  parts_[2] = body_;
  return {parts_.data(), kHeadParts + tails_};
}

}  // namespace msprobe
