// Bytes of a result as float64 numbers.
#pragma once

#include <string>
#include <vector>

#include "tensor/kernels/dtype.h"

namespace msprobe {

/// Complex numbers are pairs of real ones.
DType RealTypeOf(DType t);
/// The values of float64, float32, float16 and bfloat16, and of complex numbers of these.
std::vector<double> FloatsOf(const std::string& bytes, DType dtype);

}  // namespace msprobe
