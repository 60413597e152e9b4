// Several tensor files as one tensor: the projections that an inference engine computes as one.
#pragma once

#include <string_view>
#include <vector>

#include "base/big_array.h"
#include "compare/values/item_view.h"
#include "compare/values/tensor_folder.h"
#include "tensor/files/file_tensor.h"

namespace msprobe {

class JoinedTensor {
 public:
  /// Dimensions of 1 do not count. kBadInput when a file cannot be read, when dtypes or the other dimensions differ,
  /// and beyond 16 GiB. What does not fit what arrays may hold in memory lies in a file.
  static StatusOr<JoinedTensor> Open(const TensorFolder& folder, const std::vector<std::string_view>& names,
                                     JoinAxis axis, DType dtype);
  const FileTensor& tensor() const { return tensor_; }

 private:
  BigArray<char> bytes_;
  FileTensor tensor_;
};

}  // namespace msprobe
