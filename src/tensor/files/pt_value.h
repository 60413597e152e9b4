// What a file of torch.save() holds, as plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "tensor/kernels/tensor_view.h"

namespace msprobe {

/// What becomes of objects other than tensors and plain values. None is ever made, whatever it is.
enum class PtObjects : uint8_t {
  kRefused,
  /// Checkpoints hold arguments and metadata: kOther with the name of the class and, as items, a tuple of arguments,
  /// the attributes (none, or mostly a dict), then what was put into the object. Names of the interpreter and of the
  /// operating system are refused all the same.
  kShown,
};

struct PtTensor {
  DType dtype = DType::kUnknown;
  const void* data = nullptr;  // in the file
  std::vector<int64_t> shape, strides;
  bool requires_grad = false;
  bool plain = false;  // nothing but these says what it is: no negative or conjugate bit, no class or device of its own
  TensorView view() const { return {data, dtype, static_cast<int>(shape.size()), shape.data(), strides.data()}; }
};

struct PtValue {
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kTensor, kList, kTuple, kDict, kOther };
  Kind kind = Kind::kNone;
  int64_t i = 0;               // kBool, kInt
  double d = 0;                // kFloat
  std::string_view text;       // kText; kOther: what it is ("_rebuild_sparse_tensor"), its arguments are the items
  PtTensor tensor;             // kTensor
  std::vector<PtValue> items;  // kDict: key, value, key, value ...
};

/// Bytes of the storage of this key; null when there is none.
using PtStorages = std::function<const std::string_view*(std::string_view key)>;

}  // namespace msprobe
