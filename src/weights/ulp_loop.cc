#include "weights/ulp_loop.h"

#include <algorithm>

#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

/// 2^power
constexpr double PowerOfTwo(int power) { return __builtin_bit_cast(double, static_cast<uint64_t>(1023 + power) << 52); }

template <int kMantissa, int kLeastExponent>
void AddUlps(const double* a, const double* b, size_t n, LoopSums* sums) {
  constexpr metrics::UlpFormat kFormat{PowerOfTwo(kLeastExponent), PowerOfTwo(kMantissa - 1)};
  metrics::ActivePairs().ulps(a, b, n, kFormat, sums->at.data());
}

void MergeUlps(const LoopSums& from, double times, LoopSums* to) {
  to->at[0] += times * from.at[0];
  for (size_t i = 1; i < to->at.size(); ++i) to->at[i] = std::max(to->at[i], from.at[i]);
}

constexpr PairLoop kDoubleUlps{AddUlps<52, -1022>, MergeUlps}, kFloatUlps{AddUlps<23, -126>, MergeUlps},
    kHalfUlps{AddUlps<10, -14>, MergeUlps}, kBFloatUlps{AddUlps<7, -126>, MergeUlps},
    kE4M3Ulps{AddUlps<3, -6>, MergeUlps}, kE5M2Ulps{AddUlps<2, -14>, MergeUlps}, kWholes{AddUlps<0, 0>, MergeUlps};

}  // namespace

const PairLoop* UlpLoop(DType a, DType b) {
  const auto is = [&](DType t) { return a == t || b == t; };
  if (is(DType::kFloat8E5M2) || is(DType::kFloat8E5M2FNUZ)) return &kE5M2Ulps;
  if (is(DType::kFloat8E4M3FN) || is(DType::kFloat8E4M3FNUZ)) return &kE4M3Ulps;
  if (is(DType::kBFloat16)) return &kBFloatUlps;
  if (is(DType::kFloat16)) return &kHalfUlps;
  if (is(DType::kFloat32) || is(DType::kComplex64)) return &kFloatUlps;
  return is(DType::kFloat64) || is(DType::kComplex128) ? &kDoubleUlps : &kWholes;
}

}  // namespace msprobe
