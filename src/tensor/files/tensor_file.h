// Files of tensors: those of torch.save(), numpy and safetensors, mapped and not copied.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/status.h"
#include "tensor/files/file_tensor.h"

namespace msprobe {

class TensorFile {
 public:
  /// What the file is, its first bytes tell. `dtype` is what the dump says of the tensor; it is used where the format
  /// has no name for the type (bfloat16 and float8 in files of numpy). kBadInput for what is no such file.
  static StatusOr<TensorFile> Open(const std::string& path, DType dtype = DType::kUnknown);
  /// `bytes` outlive the object; `path` is for error texts.
  static StatusOr<TensorFile> Parse(std::string_view bytes, const std::string& path, DType dtype = DType::kUnknown);

  /// In the order of the file; those of a container have names like "key.0".
  const std::vector<FileTensor>& tensors() const { return tensors_; }
  /// The tensor of a file that holds just one; null otherwise.
  const FileTensor* tensor() const { return tensors_.size() == 1 ? tensors_.data() : nullptr; }

  /// Where the bytes of one of the tensors begin in the file.
  uint64_t OffsetOf(const FileTensor& tensor) const;

  /// Gives back the pages that lie wholly in this stretch of the file; they are read again when touched. Stretches
  /// outside of the file are left alone.
  void Release(const void* begin, size_t bytes) const;

 private:
  std::optional<MappedFile> map_;
  std::vector<FileTensor> tensors_;
};

}  // namespace msprobe
