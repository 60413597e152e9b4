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
  /// Checkpoints hold arguments and metadata, so each object becomes kOther, under its name, with the items of
  /// PtObjectItem. A call that would run something (IsHostilePtCall) is refused all the same.
  kShown,
};

/// What an object of PtObjects::kShown is made of: a tuple of arguments, the attributes (none, or mostly a dict), and
/// what was put into it, as a list and as a dict (none without).
enum PtObjectItem : uint8_t { kPtArguments, kPtState, kPtList, kPtDict, kPtObjectItems };

struct PtTensor {
  DType dtype = DType::kUnknown;
  const void* data = nullptr;  // in the file
  std::vector<int64_t> shape, strides;
  bool requires_grad = false;
  bool plain = false;  // nothing but these says what it is: no negative or conjugate bit, no class or device of its own
  TensorView view() const { return {data, dtype, static_cast<int>(shape.size()), shape.data(), strides.data()}; }
};

struct PtValue {
  /// kUnread: a storage without a tensor, or what is nested too deeply, of PtObjects::kShown.
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kTensor, kList, kTuple, kDict, kOther, kUnread };
  Kind kind = Kind::kNone;
  int64_t i = 0;               // kBool, kInt
  double d = 0;                // kFloat
  std::string_view text;       // kText; kOther: what it is ("_rebuild_sparse_tensor"), its arguments are the items
  std::string_view module;     // of a class or function that kOther, or kText in place of it, is named after
  PtTensor tensor;             // kTensor
  std::vector<PtValue> items;  // kDict: key, value, key, value ...
};

/// Bytes of the storage of this key; null when there is none.
using PtStorages = std::function<const std::string_view*(std::string_view key)>;

}  // namespace msprobe
