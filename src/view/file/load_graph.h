// Reads the graph of a rank from a .vis.db file.
#pragma once

#include <cstdint>

#include "base/status.h"
#include "view/file/graph_sides.h"
#include "view/file/vis_file.h"

namespace msprobe::view {

/// Without a memo. kBadInput when the file has no such rank at that step.
StatusOr<GraphSides> LoadGraph(const VisFile& file, int64_t step, int64_t rank);

}  // namespace msprobe::view
