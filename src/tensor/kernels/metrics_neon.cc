#include "tensor/kernels/metrics_kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include "tensor/kernels/metrics_kernel-inl.h"

namespace msprobe::metrics {
namespace {

// Advanced SIMD is part of every aarch64 machine, so nothing is asked at run time.
struct Neon {
  struct F {
    float32x4_t v[4];
  };
  struct D {
    float64x2_t v[4];
  };
  struct Counts {
    uint32x4_t n;
  };
  struct Wide {  // counts of doubles
    uint64x2_t n;
  };
  template <class R, typename Of>
  static R Each(const Of& of) {
    return {{of(0), of(1), of(2), of(3)}};
  }
  static F Set(float v) {
    return Each<F>([&](int) { return vdupq_n_f32(v); });
  }
  static D Set(double v) {
    return Each<D>([&](int) { return vdupq_n_f64(v); });
  }
  static F LoadFloat(const void* p) {
    return Each<F>([&](int i) { return vreinterpretq_f32_u8(vld1q_u8(static_cast<const uint8_t*>(p) + 16 * i)); });
  }
  static F LoadBFloat(const void* p) {
    return Each<F>([&](int i) {
      const uint16x4_t bits = vreinterpret_u16_u8(vld1_u8(static_cast<const uint8_t*>(p) + 8 * i));
      return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
    });
  }
  static F LoadHalf(const void* p) {
    return Each<F>(
        [&](int i) { return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(static_cast<const uint8_t*>(p) + 8 * i))); });
  }
  static D LoadDouble(const void* p) {
    return Each<D>([&](int i) { return vreinterpretq_f64_u8(vld1q_u8(static_cast<const uint8_t*>(p) + 16 * i)); });
  }
  static F Load(const float* p) { return LoadFloat(p); }
  static D Load(const double* p) { return LoadDouble(p); }
  static void Store(float* p, F v) {
    for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, v.v[i]);
  }
  static void Store(double* p, D v) {
    for (int i = 0; i < 4; ++i) vst1q_f64(p + 2 * i, v.v[i]);
  }
  static D Low(F v) { return Doubles(v.v[0], v.v[1]); }
  static D High(F v) { return Doubles(v.v[2], v.v[3]); }
  static D Add(D x, D y) {
    return Each<D>([&](int i) { return vaddq_f64(x.v[i], y.v[i]); });
  }
  static F Sub(F x, F y) {
    return Each<F>([&](int i) { return vsubq_f32(x.v[i], y.v[i]); });
  }
  static D Sub(D x, D y) {
    return Each<D>([&](int i) { return vsubq_f64(x.v[i], y.v[i]); });
  }
  static D Mul(D x, D y) {
    return Each<D>([&](int i) { return vmulq_f64(x.v[i], y.v[i]); });
  }
  static F Div(F x, F y) {
    return Each<F>([&](int i) { return vdivq_f32(x.v[i], y.v[i]); });
  }
  static D Div(D x, D y) {
    return Each<D>([&](int i) { return vdivq_f64(x.v[i], y.v[i]); });
  }
  static D Fma(D x, D y, D z) {
    return Each<D>([&](int i) { return vfmaq_f64(z.v[i], x.v[i], y.v[i]); });
  }
  static F Abs(F x) {
    return Each<F>([&](int i) { return vabsq_f32(x.v[i]); });
  }
  static D Abs(D x) {
    return Each<D>([&](int i) { return vabsq_f64(x.v[i]); });
  }
  static F Max(F x, F y) {
    return Each<F>([&](int i) { return vmaxq_f32(x.v[i], y.v[i]); });
  }
  static D Max(D x, D y) {
    return Each<D>([&](int i) { return vmaxq_f64(x.v[i], y.v[i]); });
  }
  static D MaxAbs(D x, D most) {
    return Each<D>([&](int i) { return vmaxq_f64(vabsq_f64(x.v[i]), most.v[i]); });
  }
  static D TwoOverPower(D x) {
    const uint64x2_t power = vdupq_n_u64(BitsOf<double>::kInfinity), top = vdupq_n_u64(kTwoByPower);
    return Each<D>(
        [&](int i) { return vreinterpretq_f64_u64(vsubq_u64(top, vandq_u64(vreinterpretq_u64_f64(x.v[i]), power))); });
  }
  static bool AnyAbove(D x, D y) {
    uint64x2_t any = vdupq_n_u64(0);
    for (int i = 0; i < 4; ++i) any = vorrq_u64(any, vcgtq_f64(x.v[i], y.v[i]));
    return vmaxvq_u32(vreinterpretq_u32_u64(any)) != 0;
  }
  static bool AllFinite(F x, F y) {
    uint32x4_t all = vdupq_n_u32(~0u);
    for (int i = 0; i < 4; ++i) all = vandq_u32(all, vandq_u32(Finite(x.v[i]), Finite(y.v[i])));
    return vminvq_u32(all) != 0;
  }
  static bool AllFinite(D x, D y) {
    uint64x2_t all = vdupq_n_u64(~uint64_t{0});
    for (int i = 0; i < 4; ++i) all = vandq_u64(all, vandq_u64(Finite(x.v[i]), Finite(y.v[i])));
    return vminvq_u32(vreinterpretq_u32_u64(all)) != 0;
  }
  static Counts NoCounts(F) { return {vdupq_n_u32(0)}; }
  static Wide NoCounts(D) { return {vdupq_n_u64(0)}; }
  static Counts CountEqual(Counts n, F x, F y) {
    for (int i = 0; i < 4; ++i)
      n.n = vsubq_u32(n.n, vceqq_u32(vreinterpretq_u32_f32(x.v[i]), vreinterpretq_u32_f32(y.v[i])));
    return n;
  }
  static Wide CountEqual(Wide n, D x, D y) {
    for (int i = 0; i < 4; ++i)
      n.n = vsubq_u64(n.n, vceqq_u64(vreinterpretq_u64_f64(x.v[i]), vreinterpretq_u64_f64(y.v[i])));
    return n;
  }
  static Counts CountBelow(Counts n, F x, float limit) {
    for (int i = 0; i < 4; ++i) n.n = vsubq_u32(n.n, vcltq_f32(x.v[i], vdupq_n_f32(limit)));
    return n;
  }
  static Wide CountBelow(Wide n, D x, double limit) {
    for (int i = 0; i < 4; ++i) n.n = vsubq_u64(n.n, vcltq_f64(x.v[i], vdupq_n_f64(limit)));
    return n;
  }
  static int64_t Total(Counts n) { return vaddvq_u32(n.n); }
  static int64_t Total(Wide n) { return static_cast<int64_t>(vaddvq_u64(n.n)); }
  static void AddWhereZero(F t, F g, float epsilon, F* num, F* den) {
    const float32x4_t add = vdupq_n_f32(epsilon);
    for (int i = 0; i < 4; ++i) {
      const uint32x4_t zero = vceqzq_f32(g.v[i]);
      num->v[i] = vbslq_f32(zero, vaddq_f32(t.v[i], add), t.v[i]);
      den->v[i] = vbslq_f32(zero, add, g.v[i]);
    }
  }
  static void AddWhereZero(D t, D g, double epsilon, D* num, D* den) {
    const float64x2_t add = vdupq_n_f64(epsilon);
    for (int i = 0; i < 4; ++i) {
      const uint64x2_t zero = vceqzq_f64(g.v[i]);
      num->v[i] = vbslq_f64(zero, vaddq_f64(t.v[i], add), t.v[i]);
      den->v[i] = vbslq_f64(zero, add, g.v[i]);
    }
  }

 private:
  static D Doubles(float32x4_t a, float32x4_t b) {
    return {{vcvt_f64_f32(vget_low_f32(a)), vcvt_high_f64_f32(a), vcvt_f64_f32(vget_low_f32(b)), vcvt_high_f64_f32(b)}};
  }
  static uint32x4_t Finite(float32x4_t v) { return vcltq_f32(vabsq_f32(v), vdupq_n_f32(__builtin_huge_valf())); }
  static uint64x2_t Finite(float64x2_t v) { return vcltq_f64(vabsq_f64(v), vdupq_n_f64(__builtin_huge_val())); }
};

}  // namespace

const PairTable* NeonPairs() {
  static const PairTable table = MakePairTable<Neon>("neon");
  return &table;
}

}  // namespace msprobe::metrics
#else
namespace msprobe::metrics {
const PairTable* NeonPairs() { return nullptr; }
}  // namespace msprobe::metrics
#endif
