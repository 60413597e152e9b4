// Hashes of structure, built up value by value; equal within one process only.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>

namespace msprobe {

inline uint64_t MixHash(uint64_t hash, uint64_t value) {
  hash = (hash ^ value) * 0x9E3779B97F4A7C15ull;
  return hash ^ (hash >> 29);
}

inline uint64_t HashOf(std::string_view text) { return std::hash<std::string_view>()(text); }

}  // namespace msprobe
