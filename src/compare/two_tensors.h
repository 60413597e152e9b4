// Two tensors, and files in a directory, that belong to no dump.json.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "compare/tensor_diff.h"
#include "tensor/file_tensor.h"

namespace msprobe {

/// The cells of two tensors.
TensorDiff DiffTwoTensors(const FileTensor& target, const FileTensor& golden);

/// A list of one element has a distance and shares as well, in tables that know no tensors without dimensions.
void AddListMetrics(const FileTensor& target, TensorDiff* diff);

/// Path of a file below `directory`, as TensorFolder::Find().
StatusOr<std::string> FindBelow(const std::string& directory, std::string_view name);

}  // namespace msprobe
