// The columns of the comparison tables.
#pragma once

#include <string_view>
#include <vector>

#include "compare/item_view.h"

namespace msprobe {

inline constexpr std::string_view kNotAvailableCell = "N/A";

std::vector<std::string_view> TableColumns(CompareMode mode, bool with_stack);

}  // namespace msprobe
