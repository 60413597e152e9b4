// Files as numpy.save() writes them for one array.
#pragma once

#include <cstdint>
#include <string>

#include "base/status.h"
#include "tensor/kernels/tensor_view.h"

namespace msprobe {

/// Writes `path` (mode 0640) with the elements of `t` in C order. Types that NumPy does not have (bfloat16, those of
/// one byte) are written as float32, which holds every value of them. The file appears complete or not at all; an
/// existing one is replaced. Adds the size of the file to `bytes`.
Status WriteNpyFile(const std::string& path, const TensorView& t, uint64_t* bytes);

/// Whether such a file has elements of another type than the tensor: float32.
bool IsWidenedInNpy(DType dtype);

}  // namespace msprobe
