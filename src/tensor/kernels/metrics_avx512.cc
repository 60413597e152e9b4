#include "tensor/kernels/isa.h"
#include "tensor/kernels/metrics_kernels.h"

#if MSPROBE_X86
MSPROBE_TARGET_BEGIN(MSPROBE_AVX512)
#include "tensor/kernels/metrics_kernel-inl.h"

namespace msprobe::metrics {
namespace {

struct Avx512 {
  using F = __m512;
  using D = __m512d;
  struct Wide {  // counts of doubles
    __m512i n;
  };
  static F Set(float v) { return _mm512_set1_ps(v); }
  static D Set(double v) { return _mm512_set1_pd(v); }
  static F LoadFloat(const void* p) { return _mm512_loadu_ps(p); }
  static F LoadBFloat(const void* p) {
    const __m256i bits = _mm256_loadu_si256(static_cast<const __m256i*>(p));
    return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_cvtepu16_epi32(bits), 16));
  }
  static F LoadHalf(const void* p) { return _mm512_cvtph_ps(_mm256_loadu_si256(static_cast<const __m256i*>(p))); }
  static D LoadDouble(const void* p) { return _mm512_loadu_pd(p); }
  static F Load(const float* p) { return LoadFloat(p); }
  static D Load(const double* p) { return LoadDouble(p); }
  static void Store(float* p, F v) { _mm512_storeu_ps(p, v); }
  static void Store(double* p, D v) { _mm512_storeu_pd(p, v); }
  static D Low(F v) { return _mm512_cvtps_pd(_mm512_castps512_ps256(v)); }
  static D High(F v) { return _mm512_cvtps_pd(_mm512_extractf32x8_ps(v, 1)); }
  static D Add(D a, D b) { return _mm512_add_pd(a, b); }
  static F Sub(F a, F b) { return _mm512_sub_ps(a, b); }
  static D Sub(D a, D b) { return _mm512_sub_pd(a, b); }
  static D Mul(D a, D b) { return _mm512_mul_pd(a, b); }
  static F Div(F a, F b) { return _mm512_div_ps(a, b); }
  static D Div(D a, D b) { return _mm512_div_pd(a, b); }
  static D Fma(D a, D b, D c) { return _mm512_fmadd_pd(a, b, c); }
  static F Abs(F a) { return _mm512_abs_ps(a); }
  static D Abs(D a) { return _mm512_abs_pd(a); }
  static F Max(F a, F b) { return _mm512_max_ps(a, b); }
  static D Max(D a, D b) { return _mm512_max_pd(a, b); }
  static D MaxAbs(D a, D most) { return _mm512_range_pd(a, most, 0b1011); }
  static D TwoOverPower(D a) {
    const __m512i power = _mm512_set1_epi64(static_cast<int64_t>(BitsOf<double>::kInfinity));
    return _mm512_castsi512_pd(_mm512_sub_epi64(_mm512_set1_epi64(static_cast<int64_t>(kTwoByPower)),
                                                _mm512_and_si512(_mm512_castpd_si512(a), power)));
  }
  static bool AnyAbove(D a, D b) { return _mm512_cmp_pd_mask(a, b, _CMP_GT_OQ) != 0; }
  static bool AllFinite(F a, F b) {
    return (_mm512_fpclass_ps_mask(a, kNotFinite) | _mm512_fpclass_ps_mask(b, kNotFinite)) == 0;
  }
  static bool AllFinite(D a, D b) {
    return (_mm512_fpclass_pd_mask(a, kNotFinite) | _mm512_fpclass_pd_mask(b, kNotFinite)) == 0;
  }
  static __m512i NoCounts(F) { return _mm512_setzero_si512(); }
  static Wide NoCounts(D) { return {_mm512_setzero_si512()}; }
  static __m512i CountEqual(__m512i n, F a, F b) {
    return Count(n, _mm512_cmpeq_epi32_mask(_mm512_castps_si512(a), _mm512_castps_si512(b)));
  }
  static Wide CountEqual(Wide n, D a, D b) {
    return Count(n, _mm512_cmpeq_epi64_mask(_mm512_castpd_si512(a), _mm512_castpd_si512(b)));
  }
  static __m512i CountBelow(__m512i n, F a, float limit) {
    return Count(n, _mm512_cmp_ps_mask(a, _mm512_set1_ps(limit), _CMP_LT_OQ));
  }
  static Wide CountBelow(Wide n, D a, double limit) {
    return Count(n, _mm512_cmp_pd_mask(a, _mm512_set1_pd(limit), _CMP_LT_OQ));
  }
  static int64_t Total(__m512i n) { return _mm512_reduce_add_epi32(n); }
  static int64_t Total(Wide n) { return _mm512_reduce_add_epi64(n.n); }
  static void AddWhereZero(F t, F g, float epsilon, F* num, F* den) {
    const __mmask16 zero = _mm512_cmp_ps_mask(g, _mm512_setzero_ps(), _CMP_EQ_OQ);
    *num = _mm512_mask_add_ps(t, zero, t, _mm512_set1_ps(epsilon));
    *den = _mm512_mask_mov_ps(g, zero, _mm512_set1_ps(epsilon));
  }
  static void AddWhereZero(D t, D g, double epsilon, D* num, D* den) {
    const __mmask8 zero = _mm512_cmp_pd_mask(g, _mm512_setzero_pd(), _CMP_EQ_OQ);
    *num = _mm512_mask_add_pd(t, zero, t, _mm512_set1_pd(epsilon));
    *den = _mm512_mask_mov_pd(g, zero, _mm512_set1_pd(epsilon));
  }

 private:
  static __m512i Count(__m512i n, __mmask16 hit) { return _mm512_mask_add_epi32(n, hit, n, _mm512_set1_epi32(1)); }
  static Wide Count(Wide n, __mmask8 hit) { return {_mm512_mask_add_epi64(n.n, hit, n.n, _mm512_set1_epi64(1))}; }
  static constexpr int kNotFinite = 0x99;  // quiet and signalling NaN, both infinities
};

PairTable MakeAvx512() { return MakePairTable<Avx512>("avx512"); }

}  // namespace
}  // namespace msprobe::metrics
MSPROBE_TARGET_END
#endif

namespace msprobe::metrics {
const PairTable* Avx512Pairs() {
#if MSPROBE_X86
  if (isa::HasAvx512()) {
    static const PairTable table = MakeAvx512();
    return &table;
  }
#endif
  return nullptr;
}
}  // namespace msprobe::metrics
