#include "tensor/kernels/isa.h"
#include "tensor/kernels/metrics_kernels.h"

#if MSPROBE_X86
MSPROBE_TARGET_BEGIN(MSPROBE_AVX2)
#include "tensor/kernels/metrics_kernel-inl.h"

namespace msprobe::metrics {
namespace {

struct Avx2 {
  struct F {
    __m256 a, b;
  };
  struct D {
    __m256d a, b;
  };
  struct Counts {
    __m256i a, b;
  };
  struct Wide {  // counts of doubles
    __m256i a, b;
  };
  static F Set(float v) { return {_mm256_set1_ps(v), _mm256_set1_ps(v)}; }
  static D Set(double v) { return {_mm256_set1_pd(v), _mm256_set1_pd(v)}; }
  static F LoadFloat(const void* p) {
    const auto* at = static_cast<const float*>(p);
    return {_mm256_loadu_ps(at), _mm256_loadu_ps(at + 8)};
  }
  static F LoadBFloat(const void* p) {
    const auto* at = static_cast<const __m128i*>(p);
    return {Widen(_mm_loadu_si128(at)), Widen(_mm_loadu_si128(at + 1))};
  }
  static F LoadHalf(const void* p) {
    const auto* at = static_cast<const __m128i*>(p);
    return {_mm256_cvtph_ps(_mm_loadu_si128(at)), _mm256_cvtph_ps(_mm_loadu_si128(at + 1))};
  }
  static D LoadDouble(const void* p) {
    const auto* at = static_cast<const double*>(p);
    return {_mm256_loadu_pd(at), _mm256_loadu_pd(at + 4)};
  }
  static F Load(const float* p) { return LoadFloat(p); }
  static D Load(const double* p) { return LoadDouble(p); }
  static void Store(float* p, F v) {
    _mm256_storeu_ps(p, v.a);
    _mm256_storeu_ps(p + 8, v.b);
  }
  static void Store(double* p, D v) {
    _mm256_storeu_pd(p, v.a);
    _mm256_storeu_pd(p + 4, v.b);
  }
  static D Low(F v) { return Doubles(v.a); }
  static D High(F v) { return Doubles(v.b); }
  static D Add(D x, D y) { return {_mm256_add_pd(x.a, y.a), _mm256_add_pd(x.b, y.b)}; }
  static F Sub(F x, F y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
  static D Sub(D x, D y) { return {_mm256_sub_pd(x.a, y.a), _mm256_sub_pd(x.b, y.b)}; }
  static D Mul(D x, D y) { return {_mm256_mul_pd(x.a, y.a), _mm256_mul_pd(x.b, y.b)}; }
  static F Div(F x, F y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
  static D Div(D x, D y) { return {_mm256_div_pd(x.a, y.a), _mm256_div_pd(x.b, y.b)}; }
  static D Fma(D x, D y, D z) { return {_mm256_fmadd_pd(x.a, y.a, z.a), _mm256_fmadd_pd(x.b, y.b, z.b)}; }
  static F Abs(F x) {
    const __m256 sign = _mm256_set1_ps(-0.0f);
    return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
  }
  static D Abs(D x) {
    const __m256d sign = _mm256_set1_pd(-0.0);
    return {_mm256_andnot_pd(sign, x.a), _mm256_andnot_pd(sign, x.b)};
  }
  static F Max(F x, F y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
  static D Max(D x, D y) { return {_mm256_max_pd(x.a, y.a), _mm256_max_pd(x.b, y.b)}; }
  static D MaxAbs(D x, D most) {
    const D absolute = Abs(x);
    return {_mm256_max_pd(absolute.a, most.a), _mm256_max_pd(absolute.b, most.b)};
  }
  static D TwoOverPower(D x) { return {TwoOverPower(x.a), TwoOverPower(x.b)}; }
  static bool AnyAbove(D x, D y) {
    return _mm256_movemask_pd(_mm256_or_pd(_mm256_cmp_pd(x.a, y.a, _CMP_GT_OQ), _mm256_cmp_pd(x.b, y.b, _CMP_GT_OQ))) !=
           0;
  }
  static bool AllFinite(F x, F y) {
    return _mm256_testz_ps(NotFinite(x.a, y.a), NotFinite(x.a, y.a)) &&
           _mm256_testz_ps(NotFinite(x.b, y.b), NotFinite(x.b, y.b));
  }
  static bool AllFinite(D x, D y) {
    return _mm256_testz_pd(NotFinite(x.a, y.a), NotFinite(x.a, y.a)) &&
           _mm256_testz_pd(NotFinite(x.b, y.b), NotFinite(x.b, y.b));
  }
  static Counts NoCounts(F) { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static Wide NoCounts(D) { return {_mm256_setzero_si256(), _mm256_setzero_si256()}; }
  static Counts CountEqual(Counts n, F x, F y) {
    return Count(n, _mm256_cmpeq_epi32(_mm256_castps_si256(x.a), _mm256_castps_si256(y.a)),
                 _mm256_cmpeq_epi32(_mm256_castps_si256(x.b), _mm256_castps_si256(y.b)));
  }
  static Wide CountEqual(Wide n, D x, D y) {
    return Count(n, _mm256_cmpeq_epi64(_mm256_castpd_si256(x.a), _mm256_castpd_si256(y.a)),
                 _mm256_cmpeq_epi64(_mm256_castpd_si256(x.b), _mm256_castpd_si256(y.b)));
  }
  static Counts CountBelow(Counts n, F x, float limit) {
    const __m256 most = _mm256_set1_ps(limit);
    return Count(n, _mm256_castps_si256(_mm256_cmp_ps(x.a, most, _CMP_LT_OQ)),
                 _mm256_castps_si256(_mm256_cmp_ps(x.b, most, _CMP_LT_OQ)));
  }
  static Wide CountBelow(Wide n, D x, double limit) {
    const __m256d most = _mm256_set1_pd(limit);
    return Count(n, _mm256_castpd_si256(_mm256_cmp_pd(x.a, most, _CMP_LT_OQ)),
                 _mm256_castpd_si256(_mm256_cmp_pd(x.b, most, _CMP_LT_OQ)));
  }
  static int64_t Total(Counts n) {
    int32_t lanes[8];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), _mm256_add_epi32(n.a, n.b));
    int64_t total = 0;
    for (int32_t lane : lanes) total += lane;
    return total;
  }
  static int64_t Total(Wide n) {
    int64_t lanes[4];
    _mm256_storeu_si256(reinterpret_cast<__m256i*>(lanes), _mm256_add_epi64(n.a, n.b));
    return lanes[0] + lanes[1] + lanes[2] + lanes[3];
  }
  static void AddWhereZero(F t, F g, float epsilon, F* num, F* den) {
    const __m256 add = _mm256_set1_ps(epsilon);
    AddWhereZero(t.a, g.a, add, &num->a, &den->a);
    AddWhereZero(t.b, g.b, add, &num->b, &den->b);
  }
  static void AddWhereZero(D t, D g, double epsilon, D* num, D* den) {
    const __m256d add = _mm256_set1_pd(epsilon);
    AddWhereZero(t.a, g.a, add, &num->a, &den->a);
    AddWhereZero(t.b, g.b, add, &num->b, &den->b);
  }

 private:
  static __m256d TwoOverPower(__m256d x) {
    const __m256i power = _mm256_set1_epi64x(static_cast<int64_t>(BitsOf<double>::kInfinity));
    return _mm256_castsi256_pd(_mm256_sub_epi64(_mm256_set1_epi64x(static_cast<int64_t>(kTwoByPower)),
                                                _mm256_and_si256(_mm256_castpd_si256(x), power)));
  }
  static __m256 Widen(__m128i bits) { return _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_cvtepu16_epi32(bits), 16)); }
  static D Doubles(__m256 v) {
    return {_mm256_cvtps_pd(_mm256_castps256_ps128(v)), _mm256_cvtps_pd(_mm256_extractf128_ps(v, 1))};
  }
  // v - v is NaN where v is not finite.
  static __m256 NotFinite(__m256 x, __m256 y) {
    return _mm256_cmp_ps(_mm256_sub_ps(x, x), _mm256_sub_ps(y, y), _CMP_UNORD_Q);
  }
  static __m256d NotFinite(__m256d x, __m256d y) {
    return _mm256_cmp_pd(_mm256_sub_pd(x, x), _mm256_sub_pd(y, y), _CMP_UNORD_Q);
  }
  // A hit is -1.
  static Counts Count(Counts n, __m256i a, __m256i b) { return {_mm256_sub_epi32(n.a, a), _mm256_sub_epi32(n.b, b)}; }
  static Wide Count(Wide n, __m256i a, __m256i b) { return {_mm256_sub_epi64(n.a, a), _mm256_sub_epi64(n.b, b)}; }
  // Where g is not zero a zero is added, which changes no finite number but the sign of a zero.
  static void AddWhereZero(__m256 t, __m256 g, __m256 add, __m256* num, __m256* den) {
    const __m256 zero = _mm256_cmp_ps(g, _mm256_setzero_ps(), _CMP_EQ_OQ);
    *num = _mm256_add_ps(t, _mm256_and_ps(zero, add));
    *den = _mm256_blendv_ps(g, add, zero);
  }
  static void AddWhereZero(__m256d t, __m256d g, __m256d add, __m256d* num, __m256d* den) {
    const __m256d zero = _mm256_cmp_pd(g, _mm256_setzero_pd(), _CMP_EQ_OQ);
    *num = _mm256_add_pd(t, _mm256_and_pd(zero, add));
    *den = _mm256_blendv_pd(g, add, zero);
  }
};

PairTable MakeAvx2() { return MakePairTable<Avx2>("avx2"); }

}  // namespace
}  // namespace msprobe::metrics
MSPROBE_TARGET_END
#endif

namespace msprobe::metrics {
const PairTable* Avx2Pairs() {
#if MSPROBE_X86
  if (isa::HasAvx2()) {
    static const PairTable table = MakeAvx2();
    return &table;
  }
#endif
  return nullptr;
}
}  // namespace msprobe::metrics
