// What a file of torch.save() holds, as plain values.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
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

struct PtValue;

/// Values in a row that does not grow: the metadata of a checkpoint has millions of them, and a vector is half as large
/// again.
class PtItems {
 public:
  PtItems() = default;
  explicit PtItems(uint32_t count);
  size_t size() const { return count_; }
  bool empty() const { return count_ == 0; }
  const PtValue* begin() const { return values_.get(); }
  const PtValue* end() const;
  const PtValue& operator[](size_t i) const;
  PtValue& operator[](size_t i);

 private:
  std::unique_ptr<PtValue[]> values_;
  uint32_t count_ = 0;
};

struct PtValue {
  /// kUnread: a storage without a tensor, or what is nested too deeply, of PtObjects::kShown.
  enum class Kind : uint8_t { kNone, kBool, kInt, kFloat, kText, kTensor, kList, kTuple, kDict, kOther, kUnread };
  Kind kind = Kind::kNone;
  union {
    int64_t i = 0;  // kBool, kInt
    double d;       // kFloat
  };
  std::string_view text;    // kText; kOther: what it is ("_rebuild_sparse_tensor"), its arguments are the items
  std::string_view module;  // of a class or function that kOther, or kText in place of it, is named after
  std::unique_ptr<PtTensor> tensor;  // kTensor
  PtItems items;                     // kDict: key, value, key, value ...
};

inline PtItems::PtItems(uint32_t count)
    : values_(count > 0 ? std::make_unique<PtValue[]>(count) : nullptr), count_(count) {}
inline const PtValue* PtItems::end() const { return values_.get() + count_; }
inline const PtValue& PtItems::operator[](size_t i) const { return values_[i]; }
inline PtValue& PtItems::operator[](size_t i) { return values_[i]; }

/// Bytes of the storage of this key; null when there is none.
using PtStorages = std::function<const std::string_view*(std::string_view key)>;

}  // namespace msprobe
