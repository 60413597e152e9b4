// The program that lists the packages of a Python.
#pragma once

#include <string_view>

namespace msprobe {

std::string_view PackagesProgram();

}  // namespace msprobe
