// A hash of a tensor's elements, to find tensors of equal content. Fast, and no protection against an attacker: whoever
// can choose the values of a training owns its dump.
#pragma once

#include "tensor/kernels/content_hash_kernels.h"
#include "tensor/kernels/tensor_view.h"

namespace msprobe {

/// Of the elements in C order; strided tensors give the value of their contiguous copy. Shape and dtype are not in it.
ContentHash HashContent(const TensorView& t);

}  // namespace msprobe
