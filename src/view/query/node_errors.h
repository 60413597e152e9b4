// How far the nodes of a graph are from their partners: the column `error` of msprobe_precision.
#pragma once

#include <memory>
#include <vector>

#include "base/status.h"
#include "view/file/graph_sides.h"
#include "view/file/vis_file.h"
#include "view/query/answers.h"

namespace msprobe::view {

/// One entry a node, relative (0.1 is 10 %), NaN where it is not known: of a pair that was made or taken apart by hand
/// the file holds none.
using NodeErrors = std::vector<double>;

/// Of a target, or of the partners that the nodes of a golden side have; read once a graph.
StatusOr<std::shared_ptr<const NodeErrors>> ErrorsOf(const VisFile& file, const GraphSides& graph, Side side);

}  // namespace msprobe::view
