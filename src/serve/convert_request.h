// What the page may ask of graph_visualize, and the words of the command that follow from it.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "view/file/served_tree.h"

namespace msprobe::serve {

/// `body` is a JSON object whose members are named like the long options of graph_visualize: paths below the tree,
/// numbers, flags and words of an allow-list; what it holds beside them is refused by name (kUsage). The result begins
/// every path with "./", and never holds a word of the body as an option.
StatusOr<std::vector<std::string>> ConvertOptions(const view::ServedTree& tree, std::string_view body);

}  // namespace msprobe::serve
