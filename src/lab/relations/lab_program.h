// Texts of Python files that programs of the laboratory use as modules.
#pragma once

#include <string_view>

namespace msprobe {

/// Of python/msprobe/_lab.py.
std::string_view LabProgram();
/// Of python/msprobe/_changes.py.
std::string_view ChangesProgram();

}  // namespace msprobe
