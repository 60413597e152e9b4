// Tensors in the memory formats of Ascend as the framework knows them: NC1HWC0 as NCHW, FRACTAL_NZ as a matrix.
#pragma once

#include <vector>

#include "base/status.h"
#include "tensor/files/adump_reader.h"

namespace msprobe {

/// A tensor whose elements lie in the file, or in `copy` where they had to be put in order.
struct HostTensor {
  FileTensor tensor;
  std::vector<char> copy;
  bool device_order = false;  // no rule for its format, or its shapes do not fit: as the device has it
};

/// `tensor` refers to the file's bytes, or to the result's own. At most as much memory as the tensor takes in the file.
HostTensor ToHost(const AdumpTensor& tensor);

}  // namespace msprobe
