// The statistics of many tensors at once, as a monitor wants them: one pass over the memory of each, on several
// threads.
#pragma once

#include <cstdint>
#include <span>

#include "tensor/kernels/stats.h"
#include "tensor/kernels/tensor_view.h"

namespace msprobe {

struct TensorSummary {
  Stats stats;
  int64_t near_zero = 0;  // elements of |x| < eps; only where it was asked for
  bool readable = false;  // false: a type or shape that has no statistics
};

/// Elements of |x| < eps, broadcast ones counted as often as they appear; -1 for types without magnitudes.
int64_t CountNearZero(const TensorView& t, double eps);

/// out[i] of tensors[i], on at most `threads` threads; the values do not depend on them. eps < 0: near_zero is not
/// asked for.
void SummarizeTensors(std::span<const TensorView> tensors, double eps, int threads, TensorSummary* out);

}  // namespace msprobe
