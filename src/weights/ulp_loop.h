// Two tensors in units in the last place, beside the other metrics.
#pragma once

#include "tensor/kernels/dtype.h"
#include "tensor/kernels/pair_loop.h"

namespace msprobe {

/// Sums: the products, the most units in the last place of the type of the two with the larger steps, the least
/// tolerance t with |a - b| <= t + t * |b| everywhere, the largest absolute value. The kernels of all instruction sets
/// give the same bits.
const PairLoop* UlpLoop(DType a, DType b);

/// Sums: the most that an element is apart beyond what rounding to the type with the larger steps moves it: half a step
/// of one side that is rounded, a whole one where both are. Null for float32 and finer types, whose steps say nothing.
const PairLoop* ExcessLoop(DType a, DType b);

}  // namespace msprobe
