#include "tensor/stats_kernels.h"

#if defined(__x86_64__)
#include <immintrin.h>

#if defined(__clang__)
#pragma clang attribute push(__attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c"))), \
                             apply_to = function)
#else
// GCC 12 warns about the deliberately undefined registers of its own intrinsics.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"
#pragma GCC push_options
#pragma GCC target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma,f16c,prefer-vector-width=512")
#endif
#include "tensor/stats_kernel-inl.h"

namespace msprobe::stats {
namespace {

struct Avx512 {
  using F = __m512;
  using D = __m512d;
  static constexpr size_t kFloats = 16;
  static F Set(float v) { return _mm512_set1_ps(v); }
  static D SetD(double v) { return _mm512_set1_pd(v); }
  static F LoadFloat(const void* p) { return _mm512_loadu_ps(p); }
  static F LoadBFloat(const void* p) {
    const __m256i bits = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static F LoadHalf(const void* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
  static D LoadD(const void* p) { return _mm512_loadu_pd(p); }
  static void Store(double* p, D v) { _mm512_storeu_pd(p, v); }
  static F Add(F a, F b) { return _mm512_add_ps(a, b); }
  static D Add(D a, D b) { return _mm512_add_pd(a, b); }
  static F Fma(F a, F b, F c) { return _mm512_fmadd_ps(a, b, c); }
  static D Fma(D a, D b, D c) { return _mm512_fmadd_pd(a, b, c); }
  static F Max(F a, F b) { return _mm512_max_ps(a, b); }
  static F Min(F a, F b) { return _mm512_min_ps(a, b); }
  static D Max(D a, D b) { return _mm512_max_pd(a, b); }
  static D Min(D a, D b) { return _mm512_min_pd(a, b); }
  static F Negate(F a) { return _mm512_xor_ps(a, _mm512_set1_ps(-0.0f)); }
  static D Low(F v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
  static D High(F v) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)); }
  static float Sum(F v) { return _mm512_reduce_add_ps(v); }
  static float Greatest(F v) { return _mm512_reduce_max_ps(v); }
  static int CountNan(F v) { return __builtin_popcount(_mm512_cmp_ps_mask(v, v, _CMP_UNORD_Q)); }
  static int CountInf(F v) {
    return __builtin_popcount(_mm512_cmp_ps_mask(_mm512_abs_ps(v), _mm512_set1_ps(__builtin_huge_valf()), _CMP_EQ_OQ));
  }
};

KernelTable MakeAvx512() { return MakeTable<Avx512>("avx512"); }

}  // namespace
}  // namespace msprobe::stats
#if defined(__clang__)
#pragma clang attribute pop
#else
#pragma GCC pop_options
#endif

namespace msprobe::stats {
const KernelTable* Avx512Kernels() {
  if (!__builtin_cpu_supports("avx512f") || !__builtin_cpu_supports("avx512bw")) return nullptr;
  if (!__builtin_cpu_supports("avx512dq") || !__builtin_cpu_supports("avx512vl")) return nullptr;
  static const KernelTable table = MakeAvx512();
  return &table;
}
}  // namespace msprobe::stats
#else
namespace msprobe::stats {
const KernelTable* Avx512Kernels() { return nullptr; }
}  // namespace msprobe::stats
#endif
