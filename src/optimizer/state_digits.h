// With how many digits values are kept, whatever type holds them.
#pragma once

#include <vector>

#include "optimizer/optimizer_record.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {

/// How many digits the values use at most, and how many of them tell.
struct UsedDigits {
  int most = 0;
  size_t told = 0;

  void Add(double value);
  /// kBFloat16 or kFloat16 where all values have no more digits than that; `dtype` where they have; kUnknown where too
  /// few values tell.
  DType Held(DType dtype) const;
};

/// Of a state after its step.
DType HeldIn(const RecordedState& state);

}  // namespace msprobe
