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
  /// `groups`: each part is cut into so many, and the first of all parts stand ahead of the second ones, as Megatron
  /// has query, key and value; kBadInput when they cannot be cut so.
  static StatusOr<JoinedTensor> Open(const TensorFolder& folder, const std::vector<std::string_view>& names,
                                     JoinAxis axis, DType dtype, int64_t groups = 1);
  /// Numbers of groups into which all parts can be cut, from 1 on.
  const std::vector<int64_t>& possible_groups() const { return possible_groups_; }
  const FileTensor& tensor() const { return tensor_; }

 private:
  BigArray<char> bytes_;
  FileTensor tensor_;
  std::vector<int64_t> possible_groups_;
};

}  // namespace msprobe
