// Which of the files behind a graph end early or are not whole.
#pragma once

#include "graph/build/graph_summary.h"
#include "graph/tree/builder.h"
#include "graph/tree/graph_plan.h"

namespace msprobe {

/// `golden` is null for one run by itself.
void NoteCutFiles(const GraphPair& pair, const RankGraph& target, const RankGraph* golden, GraphSummary* summary);

/// What of the ranks behind a merged graph is not whole; what they lack may stand anywhere in the graph.
void NoteMergedGaps(DumpSide side, const RankGraph& rank, std::vector<RecordingGap>* gaps);

/// The story with what the summary knows of files that are not whole; without a story one that says only that.
void AddGaps(GraphSummary* summary);

}  // namespace msprobe
