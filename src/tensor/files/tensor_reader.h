// A format of tensor files, as tensor_file.cc tries them; readers.def lists them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "tensor/files/file_tensor.h"

namespace msprobe {

struct TensorReader {
  /// Told by the first bytes of a file.
  bool (*knows)(std::string_view bytes);
  /// `path` is for error texts; `dtype`, what the dump says, is for formats without a name for the type.
  StatusOr<std::vector<FileTensor>> (*read)(std::string_view bytes, const std::string& path, DType dtype);
};

#define MSPROBE_TENSOR_READER(name) extern const TensorReader name;
#include "tensor/files/readers.def"
#undef MSPROBE_TENSOR_READER

}  // namespace msprobe
