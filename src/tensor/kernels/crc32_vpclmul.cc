// CRC-32 by carry-less products of whole 512-bit vectors. Source: V. Gopal et al., "Fast CRC Computation for Generic
// Polynomials Using PCLMULQDQ Instruction", Intel 2009, in the reflected form.
#include "tensor/kernels/crc32.h"
#include "tensor/kernels/isa.h"

#if MSPROBE_X86
MSPROBE_TARGET_BEGIN("avx512f,avx512bw,avx512vl,vpclmulqdq,pclmul")

namespace msprobe::crc32 {
namespace {

constexpr size_t kVector = 64, kBlock = 4 * kVector;

/// Factors that move a remainder `bits` to the left.
inline __m512i Factors(uint64_t bits) {
  const auto early = static_cast<int64_t>(uint64_t{PowerOfX(bits + 32)} << 1);
  const auto late = static_cast<int64_t>(uint64_t{PowerOfX(bits - 32)} << 1);
  return _mm512_broadcast_i32x4(_mm_set_epi64x(late, early));
}

inline __m512i Moved(__m512i v, __m512i factors, __m512i onto) {
  const __m512i early = _mm512_clmulepi64_epi128(v, factors, 0x00), late = _mm512_clmulepi64_epi128(v, factors, 0x11);
  return _mm512_ternarylogic_epi64(early, late, onto, 0x96);  // of three: exclusive or
}

inline __m128i Moved(__m128i v, __m128i factors, __m128i onto) {
  const __m128i early = _mm_clmulepi64_si128(v, factors, 0x00), late = _mm_clmulepi64_si128(v, factors, 0x11);
  return _mm_ternarylogic_epi64(early, late, onto, 0x96);
}

uint32_t FoldBlocks(const char* data, size_t bytes, uint32_t seed, size_t ahead) {
  static const __m512i by_block = Factors(8 * kBlock), by_vector = Factors(8 * kVector), by_lane = Factors(128);
  __m512i v[4];
  for (size_t k = 0; k < 4; ++k) v[k] = _mm512_loadu_si512(data + k * kVector);
  v[0] = _mm512_xor_si512(v[0], _mm512_zextsi128_si512(_mm_cvtsi32_si128(static_cast<int>(~seed))));
  for (size_t at = kBlock; at < bytes; at += kBlock) {
#pragma GCC unroll 4
    for (size_t k = 0; k < 4; ++k) {
      const char* p = data + at + k * kVector;
      if (ahead != 0) _mm_prefetch(p + ahead, _MM_HINT_T0);
      v[k] = Moved(v[k], by_block, _mm512_loadu_si512(p));
    }
  }
  __m512i all = v[0];
  for (size_t k = 1; k < 4; ++k) all = Moved(all, by_vector, v[k]);
  const __m128i factors = _mm512_castsi512_si128(by_lane);
  __m128i rest = _mm512_castsi512_si128(all);
  rest = Moved(rest, factors, _mm512_extracti32x4_epi32(all, 1));
  rest = Moved(rest, factors, _mm512_extracti32x4_epi32(all, 2));
  rest = Moved(rest, factors, _mm512_extracti32x4_epi32(all, 3));
  char last[16];
  _mm_storeu_si128(reinterpret_cast<__m128i*>(last), rest);
  // What is left stands for all bytes so far, the seed included.
  return Plain(last, sizeof last, ~uint32_t{0});
}

uint32_t Fold(const char* data, size_t bytes, uint32_t seed, size_t ahead) {
  const size_t whole = bytes / kBlock * kBlock;
  if (whole < 2 * kBlock) return Plain(data, bytes, seed);
  const uint32_t crc = FoldBlocks(data, whole, seed, ahead);
  return whole == bytes ? crc : Plain(data + whole, bytes - whole, crc);
}

}  // namespace
}  // namespace msprobe::crc32
MSPROBE_TARGET_END
#endif

namespace msprobe::crc32 {
Kernel Vector512() {
#if MSPROBE_X86
  if (isa::HasVpclmul()) return Fold;
#endif
  return nullptr;
}
}  // namespace msprobe::crc32
