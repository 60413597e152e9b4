// What the comparison of two tensors finds.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/kernels/pair_loop.h"

namespace msprobe {

/// What a cosine is when it is not a number.
enum class CosineState : uint8_t {
  kNumber,
  kLengthOne,   ///< a tensor of one element has no direction
  kTargetZero,  ///< all elements of the target are zero, those of the golden tensor are not
  kGoldenZero,
  kBothZero,  ///< `cosine` is 1
  kNan,       ///< the norms left the range of double
};

enum class PairState : uint8_t {
  kCompared,
  kEmpty,       ///< the target has no elements
  kOtherShape,  ///< the shapes differ, those of length 1 left aside
  kNoNumbers,   ///< an unknown dtype, too many dimensions, or more elements than the bytes behind them can mean
};

struct NonFinite {
  int64_t nan = 0, plus_inf = 0, minus_inf = 0;
  int64_t total() const { return nan + plus_inf + minus_inf; }
};

struct WorstElement {
  int64_t index = 0;              // in C order
  double abs_err = 0;             // |target - golden|
  double relative = 0;            // as in max_relative_err
  double target = 0, golden = 0;  // of complex tensors the absolute values
};

/// Elements that are NaN or infinite on either side count as zero on both; `differ` tells whether their kinds and
/// places are the same. The sums are double. Relative errors are |target - golden| / |golden| in float32 where both
/// tensors hold floats of at most 32 bits, and in float64 otherwise; where the golden element is zero, the epsilon of
/// that type is added to both elements. Complex numbers are compared as such: their errors are absolute values, the
/// cosine is that of the vectors of their parts.
struct TensorMetrics {
  PairState state = PairState::kNoNumbers;
  CosineState cosine_state = CosineState::kNumber;
  bool identical = false;  // same dtype, and each element has the same bits
  bool scalar = false;     // one element: the frameworks know neither a cosine nor ratios of it
  int64_t count = 0;
  double cosine = 0;
  double euc_dist = 0;     // L2 norm of the difference
  double max_abs_err = 0;  // of one element rounded to the common dtype, as the frameworks subtract
  double max_relative_err = 0;
  int64_t below_thousandth = 0, below_five_thousandths = 0;  // elements whose relative error is below 0.001, 0.005
  int64_t equal = 0;   // elements with the same value (and the same sign of zero); NaN equals NaN
  int64_t differ = 0;  // elements where one side is NaN, +Inf or -Inf and the other is not the same
  NonFinite target, golden;
  double rms_diff = 0, rms_target = 0, rms_golden = 0;
  // Largest absolute errors first, among equal ones the first in memory; elements that are broadcast on both sides are
  // named once.
  std::vector<WorstElement> worst;
  std::vector<LoopSums> loops;  // of each of MetricsOptions::loops

  double share(int64_t elements) const { return count > 0 ? static_cast<double>(elements) / count : 0; }
};

}  // namespace msprobe
