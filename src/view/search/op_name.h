// What the op of a node is called, whichever call of it the node is.
#pragma once

#include <string_view>

namespace msprobe::view {

/// "linear" of "Functional.linear.7.forward", "Linear", the class, of "Module.down_proj.Linear.forward.0"; "" of what
/// is no op. Held to search_cases.json, as opNameOf in web/src/api/search_terms.ts is.
std::string_view OpNameOf(std::string_view node_name);

}  // namespace msprobe::view
