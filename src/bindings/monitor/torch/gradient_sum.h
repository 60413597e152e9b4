// The sum of the gradients that reach one tensor on several ways, in memory of its own: a gradient that is held here
// could not be reused by autograd, which would allocate another.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "bindings/python/host_tensor.h"

namespace msprobe {

class GradientSum {
 public:
  /// The next gradient, added in its type and in this order as the framework does it. False: only that can add it; the
  /// sum is as before.
  bool Add(const TensorLook& gradient);
  bool empty() const { return data_ == nullptr; }
  /// Lives as long as the sum is not changed.
  TensorView view() const;

 private:
  DType dtype_ = DType::kUnknown;
  std::vector<int64_t> shape_;
  std::unique_ptr<char[]> data_;
};

}  // namespace msprobe
