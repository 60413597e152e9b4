// A tensor in memory as the kernels see it.
#pragma once

#include <cstdint>

#include "tensor/kernels/dtype.h"

namespace msprobe {

inline constexpr int kMaxDims = 64;

/// A strided tensor in host memory, not owned. Strides count elements and may be 0 (broadcast) or negative.
struct TensorView {
  const void* data = nullptr;
  DType dtype = DType::kUnknown;
  int ndim = 0;
  const int64_t* shape = nullptr;
  const int64_t* strides = nullptr;  // null means contiguous
};

}  // namespace msprobe
