// Reads the files of torch.save() without executing what is in them: tensors, and lists, tuples and dicts of tensors
// and plain values.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "tensor/stats.h"
#include "tensor/zip_reader.h"

namespace msprobe {

struct PtTensor {
  DType dtype = DType::kUnknown;
  const void* data = nullptr;  // in the file
  std::vector<int64_t> shape, strides;
  bool requires_grad = false;
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

/// Views of the file stay valid as long as this object.
class PtFile {
 public:
  /// kBadInput for what is no such file, or holds other objects than those above. The legacy format of torch.save(),
  /// before zip archives, is refused with a line that says so.
  static StatusOr<PtFile> Open(const std::string& path);
  /// `bytes` outlive the object; `path` is for error texts.
  static StatusOr<PtFile> Parse(std::string_view bytes, const std::string& path);

  const PtValue& value() const { return value_; }
  /// The tensor of a file that holds one and nothing else; null otherwise.
  const PtTensor* tensor() const { return value_.kind == PtValue::Kind::kTensor ? &value_.tensor : nullptr; }
  /// Compares the checksums of all members with their bytes.
  Status VerifyChecksums() const;

 private:
  std::string path_;
  std::optional<MappedFile> map_;
  std::vector<ZipMember> members_;
  PtValue value_;
};

}  // namespace msprobe
