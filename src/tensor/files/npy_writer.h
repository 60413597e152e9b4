// Files as numpy.save() writes them.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/status.h"
#include "tensor/kernels/tensor_view.h"

namespace msprobe {

/// Version 1.0, in C order, the elements aligned to 64 bytes; "" for types that numpy does not have.
std::string NpyHeader(DType dtype, std::span<const int64_t> shape);

/// Writes `path` (mode 0640), complete or not at all; an existing file is replaced. What numpy has no type for
/// (bfloat16, float8) becomes float32. Adds the size of the file to `bytes`.
Status WriteNpyFile(const std::string& path, const TensorView& t, uint64_t* bytes);

/// Whether such a file has elements of a different type than the tensor: float32.
bool IsWidenedInNpy(DType dtype);

}  // namespace msprobe
