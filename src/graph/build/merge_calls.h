// The communication calls of the ranks of a merged graph.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "graph/build/node_rows.h"
#include "graph/comm/links.h"

namespace msprobe {

/// Every call of every rank, with the node that shows it; a call that the merged graph has not kept has none. The row
/// of the first node is `first_row`; `index` is what a link shows of a node.
StatusOr<std::vector<RankNodeCalls>> ReadMergedCalls(const GraphSide& side, int64_t first_row,
                                                     const std::vector<std::string>& index);

}  // namespace msprobe
