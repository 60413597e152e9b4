// What the names of all modules of a run begin with.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace msprobe {

/// "Module." or "Cell."; "Module.0." of a model that was recorded as a list, all of whose modules begin so. Empty
/// without modules. `name_at(i)` for `i` below `count`: names of ops or of modules.
std::string_view ModulePrefix(size_t count, const std::function<std::string_view(size_t)>& name_at);

/// `name`, with `to` in the place of `from` where it begins so.
std::string WithPrefix(std::string_view name, std::string_view from, std::string_view to);

}  // namespace msprobe
