// Packages and their versions as pip prints them.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe {

/// Name and version of each line of `pip freeze` or `pip list`; empty for another text.
std::vector<std::pair<std::string, std::string>> ReadPackageList(std::string_view text);

}  // namespace msprobe
