// Programs of ours in Python that share modules, as one text for PythonProcess.
#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <utility>

namespace msprobe {

/// `main` behind `modules`, (name, text) each: modules that those after them and `main` import.
std::string JoinPrograms(std::initializer_list<std::pair<std::string_view, std::string_view>> modules,
                         std::string_view main);

}  // namespace msprobe
