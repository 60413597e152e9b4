#include <cstring>

#include "tensor/kernels/isa.h"
#include "weights/fingerprint/row_hash_kernels.h"

#if MSPROBE_X86
MSPROBE_TARGET_BEGIN(MSPROBE_AVX512)
#include "weights/fingerprint/row_hash_kernel-inl.h"

namespace msprobe::row_hash {
namespace {

inline __m512i Products(__m512i words, __m512i keys) {
  const __m512i sum = _mm512_add_epi32(words, keys);
  return _mm512_mul_epu32(sum, _mm512_srli_epi64(sum, 32));
}

inline uint64_t Stretch(const char* data, size_t bytes, const uint64_t* keys, uint64_t salt) {
  constexpr size_t kBlock = 64;
  Sums sums;
  uint64_t whole = 0;
  if (bytes >= kBlock) {
    const __m512i salts = _mm512_set1_epi64(static_cast<int64_t>(salt));
    __m512i first = _mm512_setzero_si512(), second = first;
    __m512i key = _mm512_xor_si512(_mm512_loadu_si512(keys), salts);
    for (; bytes >= kBlock; bytes -= kBlock, data += kBlock) {
      keys += kShift;
      const __m512i words = _mm512_loadu_si512(data);
      const __m512i next = _mm512_xor_si512(_mm512_loadu_si512(keys), salts);
      first = _mm512_add_epi64(first, Products(words, key));
      second = _mm512_add_epi64(second, Products(words, next));
      key = next;
    }
    const __m512i joined =
        _mm512_add_epi64(first, _mm512_mullo_epi64(second, _mm512_set1_epi64(static_cast<int64_t>(kSecond))));
    whole = static_cast<uint64_t>(_mm512_reduce_add_epi64(joined));
  }
  if (bytes == 0) return whole;
  AddWords(data, bytes, keys, salt, &sums);
  return whole + sums.Joined();
}

void Rows(const Stretches& s) {
  const char* at = s.data;
  for (size_t i = 0; i < s.rows; ++i, at += s.stride) s.out[i] += Stretch(at, s.bytes, s.keys, s.salt);
}

}  // namespace

Kernel Avx512() { return isa::HasAvx512() ? Rows : nullptr; }

}  // namespace msprobe::row_hash
MSPROBE_TARGET_END

#else
namespace msprobe::row_hash {
Kernel Avx512() { return nullptr; }
}  // namespace msprobe::row_hash
#endif
