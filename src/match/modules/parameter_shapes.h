// What the parameters of a module look like, from a text such as "weight [64, 32], bias [64]".
#pragma once

#include <cstdint>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe {

using Shapes = std::vector<uint64_t>;  // hashes, sorted

/// Without names; of two dimensions the smaller first.
Shapes ShapesOf(std::string_view parameters);
size_t CountCommon(const Shapes& a, const Shapes& b);

/// Rows and other sizes of the weight, "64" and "32" of "weight [64, 32]"; empty where that is not known.
std::pair<int64_t, std::string_view> RowsOf(std::string_view parameters);

/// Of all of them together; -1 where they cannot be counted.
int64_t ElementsOf(std::string_view parameters);

}  // namespace msprobe
