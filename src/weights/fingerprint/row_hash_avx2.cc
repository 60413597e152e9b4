#include <cstring>

#include "tensor/kernels/isa.h"
#include "weights/fingerprint/row_hash_kernels.h"

#if MSPROBE_X86
MSPROBE_TARGET_BEGIN(MSPROBE_AVX2)
#include "weights/fingerprint/row_hash_kernel-inl.h"

namespace msprobe::row_hash {
namespace {

inline __m256i Load(const void* p) { return _mm256_loadu_si256(static_cast<const __m256i*>(p)); }

inline __m256i Products(__m256i words, __m256i keys) {
  const __m256i sum = _mm256_add_epi32(words, keys);
  return _mm256_mul_epu32(sum, _mm256_srli_epi64(sum, 32));
}

inline uint64_t SumOf(__m256i v) {
  const __m128i half = _mm_add_epi64(_mm256_castsi256_si128(v), _mm256_extracti128_si256(v, 1));
  return static_cast<uint64_t>(_mm_cvtsi128_si64(half)) + static_cast<uint64_t>(_mm_extract_epi64(half, 1));
}

inline uint64_t Stretch(const char* data, size_t bytes, const uint64_t* keys, uint64_t salt) {
  constexpr size_t kBlock = 64;
  Sums sums;
  if (bytes >= kBlock) {
    const __m256i salts = _mm256_set1_epi64x(static_cast<int64_t>(salt));
    __m256i first = _mm256_setzero_si256(), second = first, first_b = first, second_b = first;
    __m256i low = _mm256_xor_si256(Load(keys), salts), high = _mm256_xor_si256(Load(keys + 4), salts);
    for (; bytes >= kBlock; bytes -= kBlock, data += kBlock) {
      keys += kShift;
      const __m256i a = Load(data), b = Load(data + kBlock / 2);
      const __m256i next_low = _mm256_xor_si256(Load(keys), salts), next_high = _mm256_xor_si256(Load(keys + 4), salts);
      first = _mm256_add_epi64(first, Products(a, low));
      first_b = _mm256_add_epi64(first_b, Products(b, high));
      second = _mm256_add_epi64(second, Products(a, next_low));
      second_b = _mm256_add_epi64(second_b, Products(b, next_high));
      low = next_low;
      high = next_high;
    }
    sums.first = SumOf(_mm256_add_epi64(first, first_b));
    sums.second = SumOf(_mm256_add_epi64(second, second_b));
  }
  AddWords(data, bytes, keys, salt, &sums);
  return sums.Joined();
}

void Rows(const Stretches& s) {
  const char* at = s.data;
  for (size_t i = 0; i < s.rows; ++i, at += s.stride) s.out[i] += Stretch(at, s.bytes, s.keys, s.salt);
}

}  // namespace

Kernel Avx2() { return isa::HasAvx2() ? Rows : nullptr; }

}  // namespace msprobe::row_hash
MSPROBE_TARGET_END

#else
namespace msprobe::row_hash {
Kernel Avx2() { return nullptr; }
}  // namespace msprobe::row_hash
#endif
