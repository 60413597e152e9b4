// Names of dtypes: PyTorch's, MindSpore's, and the classes of Python values.
#pragma once

#include <string_view>

namespace msprobe {

/// True when values of these dtypes may be compared: equal, or both floating.
bool DTypesMatch(std::string_view a, std::string_view b);

/// True for two names of one dtype: "torch.float32" and MindSpore's "Float32".
bool SameDType(std::string_view a, std::string_view b);

}  // namespace msprobe
