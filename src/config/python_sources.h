// Python files as sources of settings.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "config/settings.h"

namespace msprobe {

/// A module of settings, with those that its `_base_` names, or a program, with what its calls are given. `dialect`:
/// what is known of the stack; `given`: the arguments of the command that starts it, which get the names that the
/// program has for them. Files that are not there are named in a note.
Status AddPythonFile(const std::string& path, ConfigDialect dialect, std::vector<Setting>* given, Configuration* out);

}  // namespace msprobe
