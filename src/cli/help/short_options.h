// Options with one dash and several letters, as the old command line has them.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace msprobe {

/// Two-letter short options of the old command line ("-tp X", "-gp=X", "-fm") as the long ones that CLI11 knows. Values
/// that follow stay as they are; "--" ends the rewriting.
std::vector<std::string> ExpandShortOptions(std::vector<std::string> args);

/// "-tp" of "--target_path"; "" for an option without such a form.
std::string_view ShortOf(std::string_view option);

}  // namespace msprobe
