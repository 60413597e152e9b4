// What the rows of a graph add to its summary.
#pragma once

#include <vector>

#include "graph/build/graph_summary.h"
#include "graph/build/node_rows.h"

namespace msprobe {

/// A collection shows the worst of its calls; they were written before it.
Verdict WorstOf(const NodeGraph& graph, uint32_t node, const std::vector<Verdict>& verdicts);

/// Counts a row. `compared`: the graph has a golden side.
void CountRow(const GraphSide& side, const NodeRows::Row& row, bool compared, GraphSummary* summary);

/// Notes the ranks whose parts stand out in the first error, when that is in `block`.
void NoteBlock(const GraphSide& side, const NodeBlock& block, GraphSummary* summary);

}  // namespace msprobe
