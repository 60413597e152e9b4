// Hashes of names. Names come from files, so the hash is seeded: nobody can write a file whose names all share a slot.
#pragma once

#include <cstdint>
#include <cstring>
#include <string_view>

namespace msprobe {

/// Different in each process; the number in MSPROBE_HASH_SEED where that is set, for tests: no output depends on it.
extern const uint64_t kNameSeed;

/// Eight bytes at a time; names of ops differ mostly in a digit or two. Both halves of each product count, and the
/// factor is as secret as the start: otherwise two names that differ in the top bits of two words would collide for any
/// seed.
inline uint64_t HashName64(std::string_view s, uint64_t seed = kNameSeed) {
  constexpr uint64_t kMultiplier = 0x9E3779B97F4A7C15;
  const uint64_t factor = (seed * 0xD1342543DE82EF95 + kMultiplier) | 1;  // never 0
  uint64_t h = seed ^ (s.size() * kMultiplier);
  const auto mix = [&](uint64_t word) {
    const auto product = static_cast<unsigned __int128>(h ^ word) * factor;
    h = static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  uint64_t word = 0;
  for (; s.size() >= sizeof word; s.remove_prefix(sizeof word)) {
    std::memcpy(&word, s.data(), sizeof word);
    mix(word);
  }
  word = 0;
  if (!s.empty()) std::memcpy(&word, s.data(), s.size());
  mix(word);
  return h ^ (h >> 32);
}

inline uint32_t HashName(std::string_view s, uint64_t seed = kNameSeed) {
  return static_cast<uint32_t>(HashName64(s, seed));
}

}  // namespace msprobe
