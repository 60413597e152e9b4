// Kernels of the framework that are known to be inaccurate.
#pragma once

#include <string_view>

namespace msprobe {

/// What is known of a function's kernel; "" of most. `api` as "log_ndtr" or "special.log_ndtr", `dtype`
/// "torch.float16".
std::string_view KnownKernel(std::string_view api, std::string_view direction, std::string_view dtype);

}  // namespace msprobe
