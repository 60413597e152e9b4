// The text of python/msprobe/_ray.py, as part of the command.
#pragma once

#include <string_view>

namespace msprobe {

std::string_view RayProgram();

}  // namespace msprobe
