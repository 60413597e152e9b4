// Views of memory that an input describes.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/kernels/tensor_view.h"

namespace msprobe::fuzz {

inline constexpr int64_t kMostElements = 100000;

/// A view that the input describes, inside the bytes that follow the description.
struct View {
  DType dtype = DType::kUnknown;
  std::vector<int64_t> shape, strides;
  std::vector<char> memory;
  int64_t begin = 0, count = 1;
  TensorView tensor() const {
    return {memory.data() + begin * static_cast<int64_t>(ElementSize(dtype)), dtype, static_cast<int>(shape.size()),
            shape.data(), strides.data()};
  }
};

inline bool Describe(const uint8_t* data, size_t size, View* v) {
  if (size < 2) return false;
  v->dtype = static_cast<DType>(data[0] % static_cast<int>(DType::kUnknown));
  const size_t ndim = data[1] % 6;
  if (size < 2 + 2 * ndim) return false;
  const int64_t element = static_cast<int64_t>(ElementSize(v->dtype));
  const int64_t available = static_cast<int64_t>(size - 2 - 2 * ndim) / element;
  int64_t low = 0, high = 0;
  for (size_t d = 0; d < ndim; ++d) {
    const int64_t length = data[2 + 2 * d], stride = static_cast<int8_t>(data[3 + 2 * d]);
    v->shape.push_back(length);
    v->strides.push_back(stride);
    v->count *= length;
    if (length > 0) (stride < 0 ? low : high) += (length - 1) * stride;
    if (v->count > kMostElements) return false;
  }
  if (v->count > 0 && high - low + 1 > available) return false;
  v->begin = v->count > 0 ? -low : 0;
  const char* bytes = reinterpret_cast<const char*>(data) + 2 + 2 * ndim;
  v->memory.assign(bytes, bytes + available * element);
  return true;
}

}  // namespace msprobe::fuzz
