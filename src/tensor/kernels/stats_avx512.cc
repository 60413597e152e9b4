#include "tensor/kernels/isa.h"
#include "tensor/kernels/stats_kernels.h"

#if MSPROBE_X86
MSPROBE_TARGET_BEGIN(MSPROBE_AVX512)
#include "tensor/kernels/stats_kernel-inl.h"

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

StatsTable MakeAvx512() { return MakeTable<Avx512>("avx512"); }

}  // namespace
}  // namespace msprobe::stats
MSPROBE_TARGET_END
#endif

namespace msprobe::stats {
const StatsTable* Avx512Kernels() {
#if MSPROBE_X86
  if (isa::HasAvx512()) {
    static const StatsTable table = MakeAvx512();
    return &table;
  }
#endif
  return nullptr;
}
}  // namespace msprobe::stats
