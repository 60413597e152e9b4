// Files of the safetensors format: a header in JSON that names tensors, then their bytes.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/files/file_tensor.h"

namespace msprobe {

/// Whether the first bytes are the length of a header and its brace.
bool LooksLikeSafetensors(std::string_view bytes);

/// Refuses headers over 100 MB, and tensors whose bytes overlap, leave gaps or do not fit their shapes.
StatusOr<std::vector<FileTensor>> ReadSafetensors(std::string_view bytes, const std::string& path);

struct NamedTensor {
  std::string name;
  TensorView view;  // any strides
};

struct TensorHeading {
  std::string name;
  DType dtype;
  std::vector<int64_t> shape;
};
/// What stands before the elements, which follow as `order` says, without gaps. Refuses as WriteSafetensors().
StatusOr<std::string> SafetensorsHead(const std::string& path, const std::vector<TensorHeading>& tensors,
                                      std::vector<size_t>* order);

/// Writes a file that all readers of the format take; metadata is {"format": "pt"}. kBadInput for a type that the
/// format does not know, and for a name that comes twice.
Status WriteSafetensors(const std::string& path, const std::vector<NamedTensor>& tensors);

}  // namespace msprobe
