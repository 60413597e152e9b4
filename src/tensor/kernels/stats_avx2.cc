#include "tensor/kernels/isa.h"
#include "tensor/kernels/stats_kernels.h"

#if MSPROBE_X86
MSPROBE_TARGET_BEGIN(MSPROBE_AVX2)
#include "tensor/kernels/stats_kernel-inl.h"

namespace msprobe::stats {
namespace {

struct Avx2 {
  using F = __m256;
  using D = __m256d;
  static constexpr size_t kFloats = 8;
  static F Set(float v) { return _mm256_set1_ps(v); }
  static D SetD(double v) { return _mm256_set1_pd(v); }
  static F LoadFloat(const void* p) { return _mm256_loadu_ps(static_cast<const float*>(p)); }
  static F LoadBFloat(const void* p) {
    const __m128i bits = _mm_loadu_si128(static_cast<const __m128i*>(p));
    return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16));
  }
  static F LoadHalf(const void* p) { return _mm256_cvtph_ps(_mm_loadu_si128(static_cast<const __m128i*>(p))); }
  static D LoadD(const void* p) { return _mm256_loadu_pd(static_cast<const double*>(p)); }
  static void Store(double* p, D v) { _mm256_storeu_pd(p, v); }
  static F Add(F a, F b) { return _mm256_add_ps(a, b); }
  static D Add(D a, D b) { return _mm256_add_pd(a, b); }
  static F Fma(F a, F b, F c) { return _mm256_fmadd_ps(a, b, c); }
  static D Fma(D a, D b, D c) { return _mm256_fmadd_pd(a, b, c); }
  static F Max(F a, F b) { return _mm256_max_ps(a, b); }
  static F Min(F a, F b) { return _mm256_min_ps(a, b); }
  static D Max(D a, D b) { return _mm256_max_pd(a, b); }
  static D Min(D a, D b) { return _mm256_min_pd(a, b); }
  static F Negate(F a) { return _mm256_xor_ps(a, _mm256_set1_ps(-0.0f)); }
  static D Low(F v) { return _mm256_cvtps_pd(_mm256_castps256_ps128(v)); }
  static D High(F v) { return _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1)); }
  static float Sum(F v) {
    __m128 s = _mm_add_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_add_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_add_ss(s, _mm_movehdup_ps(s)));
  }
  static float Greatest(F v) {
    __m128 s = _mm_max_ps(_mm256_castps256_ps128(v), _mm256_extractf128_ps(v, 1));
    s = _mm_max_ps(s, _mm_movehl_ps(s, s));
    return _mm_cvtss_f32(_mm_max_ss(s, _mm_movehdup_ps(s)));
  }
  static int CountNan(F v) {
    return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(_mm256_cmp_ps(v, v, _CMP_UNORD_Q))));
  }
  static int CountInf(F v) {
    const F absolute = _mm256_andnot_ps(_mm256_set1_ps(-0.0f), v);
    const F hit = _mm256_cmp_ps(absolute, _mm256_set1_ps(__builtin_huge_valf()), _CMP_EQ_OQ);
    return __builtin_popcount(static_cast<unsigned>(_mm256_movemask_ps(hit)));
  }
};

StatsTable MakeAvx2() { return MakeTable<Avx2>("avx2"); }

}  // namespace
}  // namespace msprobe::stats
MSPROBE_TARGET_END
#endif

namespace msprobe::stats {
const StatsTable* Avx2Kernels() {
#if MSPROBE_X86
  if (isa::HasAvx2()) {
    static const StatsTable table = MakeAvx2();
    return &table;
  }
#endif
  return nullptr;
}
}  // namespace msprobe::stats
