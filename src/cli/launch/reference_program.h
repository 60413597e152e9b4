// The command of a reference: that of the ranks, on one of them.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

/// `given`: a whole command, or "". Otherwise `program` with one process a node, each parallel size 1, and what `set`
/// says ("name=value"). kUsage where nothing changes.
StatusOr<std::vector<std::string>> ReferenceProgram(const std::vector<std::string>& program, const std::string& given,
                                                    const std::vector<std::string>& set);

/// As a shell takes a line apart: blanks, quotes and backslashes.
StatusOr<std::vector<std::string>> ShellWords(const std::string& text);

}  // namespace msprobe
