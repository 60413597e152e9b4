// Numbers of dumps as people read them.
#pragma once

#include <string>
#include <string_view>

namespace msprobe {

/// Six digits of a number that has a fraction; everything else, integers included, as it is.
std::string SixDigits(std::string_view number);

}  // namespace msprobe
