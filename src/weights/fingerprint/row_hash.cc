#include "weights/fingerprint/row_hash.h"

#include <algorithm>
#include <array>

#include "weights/fingerprint/row_hash_kernel-inl.h"
#include "weights/fingerprint/row_hash_kernels.h"

namespace msprobe {
namespace row_hash {
namespace {

void RowsPlain(const Stretches& s) {
  const char* at = s.data;
  for (size_t i = 0; i < s.rows; ++i, at += s.stride) {
    Sums sums;
    AddWords(at, s.bytes, s.keys, s.salt, &sums);
    s.out[i] += sums.Joined();
  }
}

/// SplitMix64: the n-th number.
uint64_t RandomNumber(uint64_t n) {
  uint64_t z = (n + 1) * 0x9e3779b97f4a7c15;
  z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
  z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
  return z ^ (z >> 31);
}

using KeyTable = std::array<uint64_t, kKeys + kShift>;
const uint64_t* Keys() {
  alignas(64) static const KeyTable table = [] {
    KeyTable out{};
    for (size_t i = 0; i < out.size(); ++i) out[i] = RandomNumber(i);
    return out;
  }();
  return table.data();
}

Kernel Fastest() {
  if (const Kernel kernel = Avx512()) return kernel;
  if (const Kernel kernel = Avx2()) return kernel;
  return Plain();
}

}  // namespace

Kernel Plain() { return RowsPlain; }

}  // namespace row_hash

void AddRowHashes(const char* data, size_t rows, int64_t stride, size_t bytes, uint64_t first_word, uint64_t* out) {
  using row_hash::kKeys;
  static const row_hash::Kernel kernel = row_hash::Fastest();
  static const uint64_t* const keys = row_hash::Keys();
  // Keys of later tables are those of the first with some bits turned.
  const auto salt = [](uint64_t table) { return table == 0 ? 0 : row_hash::RandomNumber(~table); };
  const uint64_t place = first_word % kKeys, words = (bytes + kHashWord - 1) / kHashWord;
  if (place + words <= kKeys) return kernel({data, rows, stride, bytes, keys + place, salt(first_word / kKeys), out});
  for (size_t i = 0; i < rows; ++i, data += stride) {
    uint64_t word = first_word;
    for (size_t done = 0; done < bytes;) {
      const size_t taken = std::min<size_t>(bytes - done, (kKeys - word % kKeys) * kHashWord);
      kernel({data + done, 1, 0, taken, keys + word % kKeys, salt(word / kKeys), out + i});
      done += taken;
      word += taken / kHashWord;
    }
  }
}

}  // namespace msprobe
