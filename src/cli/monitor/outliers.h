// Which values of a row stand out of those beside them.
#pragma once

#include <cstddef>
#include <vector>

namespace msprobe {

/// Of each value: 1 where it is above its neighbours on both sides by far, -1 where it is below them, else 0. Values
/// that are not positive and finite stand out of nothing.
std::vector<int> OutOfLine(const std::vector<float>& values);

}  // namespace msprobe
