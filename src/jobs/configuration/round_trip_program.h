// The program that decodes and encodes ids with the library of a tokenizer.
#pragma once

#include <string_view>

namespace msprobe {

std::string_view RoundTripProgram();

}  // namespace msprobe
