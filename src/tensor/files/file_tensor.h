// A tensor that lies in a file.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tensor/kernels/stats.h"

namespace msprobe {

struct FileTensor {
  std::string name;  // "" where the file holds one tensor and nothing else
  DType dtype = DType::kUnknown;
  const void* data = nullptr;  // in the file
  std::vector<int64_t> shape, strides;
  bool requires_grad = false;
  bool plain = false;  // of a file of torch.save(): its bytes as they are, and these, are all that there is of it
  TensorView view() const { return {data, dtype, static_cast<int>(shape.size()), shape.data(), strides.data()}; }
};

/// Strides in C order; false when the elements, or their bytes, are more than `most_bytes` or cannot be counted. On
/// success `bytes` is what the tensor takes.
bool SetContiguous(FileTensor* tensor, uint64_t most_bytes, uint64_t* bytes);

}  // namespace msprobe
