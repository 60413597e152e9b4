// The tensor files of ATB, Ascend's library of transformer operators: lines "key=value" up to "$End=", then the
// elements.
#pragma once

#include <string>
#include <string_view>

#include "base/status.h"
#include "tensor/files/file_tensor.h"

namespace msprobe {

/// Needs "dtype" (a number of ATB) and "dims"; other keys are passed over. Refuses, in one line, what holds another
/// number of bytes than its dims say, or keeps its values in another file ("data").
StatusOr<FileTensor> ReadAtb(std::string_view bytes, const std::string& path);

}  // namespace msprobe
