#include "tensor/kernels/metrics_loops.h"

#include <cmath>

namespace msprobe::metrics {
namespace {

/// Of the elements of a run, which may have been converted.
DType TypeOf(Work work, const SideLayout& side) {
  switch (work) {
    case Work::kFloats:
      return side.floats == kBFloat ? DType::kBFloat16 : side.floats == kHalf ? DType::kFloat16 : DType::kFloat32;
    case Work::kDoubles: return DType::kFloat64;
    case Work::kInts: return side.is_unsigned ? DType::kUInt64 : DType::kInt64;
    case Work::kComplex: break;
  }
  return DType::kComplex128;
}

}  // namespace

void AddRun(const PairReader& pair, const Run& run, std::span<const PairLoop* const> loops, LoopSums* sums) {
  double target[kRun], golden[kRun];
  // A run is of a type that can be converted.
  (void)ToDoubles(TypeOf(pair.work(), pair.target()), run.target, run.elements, target);
  (void)ToDoubles(TypeOf(pair.work(), pair.golden()), run.golden, run.elements, golden);
  for (size_t i = 0; i < run.elements; ++i) {
    const bool finite = std::isfinite(target[i]) && std::isfinite(golden[i]);
    target[i] = finite ? target[i] : 0;
    golden[i] = finite ? golden[i] : 0;
  }
  for (size_t k = 0; k < loops.size(); ++k) loops[k]->add(target, golden, run.elements, &sums[k]);
}

}  // namespace msprobe::metrics
