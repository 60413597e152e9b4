// Several tensor files as one tensor: the projections that an inference engine computes as one.
#pragma once

#include <string_view>
#include <vector>

#include "base/big_array.h"
#include "compare/tensor_folder.h"
#include "tensor/file_tensor.h"

namespace msprobe {

/// How the tensors of an item's parts make one.
enum class JoinAxis : uint8_t {
  kFirstOnly,  // they are the same tensor: an input that several modules read
  kFirst,      // weights and biases: below each other
  kLast,       // outputs: beside each other
};

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
