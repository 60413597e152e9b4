// The errors of a pair of single elements, which may be NaN or infinite.
#pragma once

#include "tensor/kernels/pair_metrics.h"

namespace msprobe {

struct OneElementErrors {
  double absolute = 0, relative = 0;
};

/// As floating-point arithmetic has them: infinity minus infinity is NaN.
OneElementErrors ErrorsOfOne(const TensorMetrics& metrics);

}  // namespace msprobe
