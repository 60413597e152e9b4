// Which Python runs the command of a user who wrote `python`.
#pragma once

#include <string>
#include <vector>

namespace msprobe {

/// The program as given, but for a `python` without a path of which the first on PATH has no msprobe: then the Python
/// of this installation, and a line on stderr that says so.
std::vector<std::string> WithPackage(std::vector<std::string> program);

}  // namespace msprobe
