// The graph of a rank out of the compact tables: nodes by the numbers of their names, without a look at the names.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string_view>

#include "base/status.h"
#include "view/file/graph_sides.h"
#include "view/file/vis_file.h"

namespace msprobe::view {

/// False, and nothing in `out`, when the numbers of the names have gaps or there are many more of them than nodes; then
/// the file is read as any other. `known` is the list of a graph of this file read before, or null; the list that was
/// used is in the trees.
StatusOr<bool> LoadCompactGraph(const VisFile& file, int64_t step, int64_t rank, std::shared_ptr<const NodeNames> known,
                                GraphSides* out);

}  // namespace msprobe::view
