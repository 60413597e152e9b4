// The hash of rows for each instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace msprobe::row_hash {

inline constexpr size_t kKeys =
    1024;  // words of a row that have keys of their own, in the fastest memory; then they come again, salted
inline constexpr size_t kShift = 8;                      // how far the second key of a word lies behind its first
inline constexpr uint64_t kSecond = 0x9e3779b97f4a7c15;  // what the second sum is multiplied by, so that both are one

/// Adds the hashes of stretches of `bytes`, `stride` bytes apart, to `out`. They lie within one table of keys: keys[i]
/// and keys[i + kShift], with `salt`, are those of word i.
struct Stretches {
  const char* data;
  size_t rows;
  int64_t stride;
  size_t bytes;
  const uint64_t* keys;
  uint64_t salt;
  uint64_t* out;
};
using Kernel = void (*)(const Stretches& s);

/// All give the same values; null where the compiler or this machine does not know the instructions.
Kernel Avx2();
Kernel Avx512();
/// For any machine.
Kernel Plain();

}  // namespace msprobe::row_hash
