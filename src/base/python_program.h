// Programs of ours in Python that share modules, as one text for PythonProcess.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace msprobe {

using ProgramModules = std::vector<std::pair<std::string_view, std::string_view>>;

/// `main` behind `modules`, (name, text) each: modules that those after them and `main` import.
std::string JoinPrograms(const ProgramModules& modules, std::string_view main);

}  // namespace msprobe
