// What all instruction sets share: single words.
#include <cstring>

#include "weights/fingerprint/row_hash_kernels.h"

namespace msprobe::row_hash {
namespace {

struct Sums {
  uint64_t first = 0, second = 0;
  uint64_t Joined() const { return first + kSecond * second; }
};

inline uint64_t Product(uint64_t word, uint64_t key) {
  const auto low = static_cast<uint32_t>(word) + static_cast<uint32_t>(key);
  const auto high = static_cast<uint32_t>(word >> 32) + static_cast<uint32_t>(key >> 32);
  return uint64_t{low} * high;
}

inline void AddWords(const char* data, size_t bytes, const uint64_t* keys, uint64_t salt, Sums* sums) {
  for (size_t i = 0; bytes > 0; ++i) {
    const size_t taken = bytes < 8 ? bytes : 8;
    uint64_t word = 0;
    std::memcpy(&word, data, taken);
    sums->first += Product(word, keys[i] ^ salt);
    sums->second += Product(word, keys[i + kShift] ^ salt);
    data += taken;
    bytes -= taken;
  }
}

}  // namespace
}  // namespace msprobe::row_hash
