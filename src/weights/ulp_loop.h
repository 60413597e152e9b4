// Two tensors in units in the last place, beside the other metrics.
#pragma once

#include "tensor/kernels/dtype.h"
#include "tensor/kernels/pair_loop.h"

namespace msprobe {

/// Sums: the products, the most units in the last place of the type of the two with the larger steps, the least
/// tolerance t with |a - b| <= t + t * |b| everywhere, the largest absolute value. The kernels of all instruction sets
/// give the same bits.
const PairLoop* UlpLoop(DType a, DType b);

}  // namespace msprobe
