#include "tensor/kernels/stats_kernels.h"

#if defined(__aarch64__)
#include <arm_neon.h>

#include "tensor/kernels/stats_kernel-inl.h"

namespace msprobe::stats {
namespace {

// Advanced SIMD is part of every aarch64 machine, so nothing is asked at run time.
struct Neon {
  using F = float32x4_t;
  using D = float64x2_t;
  static constexpr size_t kFloats = 4;
  static F Set(float v) { return vdupq_n_f32(v); }
  static D SetD(double v) { return vdupq_n_f64(v); }
  static F LoadFloat(const void* p) { return vreinterpretq_f32_u8(vld1q_u8(static_cast<const uint8_t*>(p))); }
  static F LoadBFloat(const void* p) {
    const uint16x4_t bits = vreinterpret_u16_u8(vld1_u8(static_cast<const uint8_t*>(p)));
    return vreinterpretq_f32_u32(vshll_n_u16(bits, 16));
  }
  static F LoadHalf(const void* p) {
    return vcvt_f32_f16(vreinterpret_f16_u8(vld1_u8(static_cast<const uint8_t*>(p))));
  }
  static D LoadD(const void* p) { return vreinterpretq_f64_u8(vld1q_u8(static_cast<const uint8_t*>(p))); }
  static void Store(double* p, D v) { vst1q_f64(p, v); }
  static F Add(F a, F b) { return vaddq_f32(a, b); }
  static D Add(D a, D b) { return vaddq_f64(a, b); }
  static F Fma(F a, F b, F c) { return vfmaq_f32(c, a, b); }
  static D Fma(D a, D b, D c) { return vfmaq_f64(c, a, b); }
  // The "number" forms give the other operand where one is NaN.
  static F Max(F a, F b) { return vmaxnmq_f32(a, b); }
  static F Min(F a, F b) { return vminnmq_f32(a, b); }
  static D Max(D a, D b) { return vmaxnmq_f64(a, b); }
  static D Min(D a, D b) { return vminnmq_f64(a, b); }
  static F Negate(F a) { return vnegq_f32(a); }
  static D Low(F v) { return vcvt_f64_f32(vget_low_f32(v)); }
  static D High(F v) { return vcvt_high_f64_f32(v); }
  static float Sum(F v) { return vaddvq_f32(v); }
  static float Greatest(F v) { return vmaxnmvq_f32(v); }
  static int CountNan(F v) { return 4 - Ones(vceqq_f32(v, v)); }
  static int CountInf(F v) { return Ones(vceqq_f32(vabsq_f32(v), vdupq_n_f32(__builtin_huge_valf()))); }

 private:
  static int Ones(uint32x4_t hit) { return static_cast<int>(vaddvq_u32(vshrq_n_u32(hit, 31))); }
};

}  // namespace

const StatsTable* NeonKernels() {
  static const StatsTable table = MakeTable<Neon>("neon");
  return &table;
}

}  // namespace msprobe::stats
#else
namespace msprobe::stats {
const StatsTable* NeonKernels() { return nullptr; }
}  // namespace msprobe::stats
#endif
