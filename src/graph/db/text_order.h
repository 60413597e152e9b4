// Sorting many texts that begin alike, as names of nodes do.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace msprobe {

/// The positions of `texts` in the order of their bytes; equal ones as they come.
std::vector<uint32_t> OrderOfTexts(const std::vector<std::string_view>& texts);

}  // namespace msprobe
