#pragma once

#include <string>

namespace msprobe {

/// How many times as large something is, as people write it: "1.25", "340", "21,000", "8.1e+09"; of `digits` digits.
std::string TimesText(double times, int digits);

}  // namespace msprobe
