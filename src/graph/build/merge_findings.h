// Findings about merged ranks among those of the graph.
#pragma once

#include <utility>
#include <vector>

#include "diagnose/divergence.h"
#include "graph/comm/findings.h"
#include "graph/db/vis_db.h"
#include "parallel/merge_data.h"

namespace msprobe {

/// At most some of a kind. `found` names rows of a block whose first row has the id `first_row`.
void AddMergeFindings(const GraphKey& key, int64_t first_row, const std::vector<std::pair<size_t, MergeFinding>>& found,
                      std::vector<GraphFinding>* findings);
/// Without a database.
void AddMergeFindings(const GraphKey& key, const std::vector<MergeFinding>& found, std::vector<GraphFinding>* findings);

/// Of the findings from `first` on: a rank is suspected where a difference begins, not where one is passed on.
void KeepSuspectsOf(const std::vector<BegunOp>& begun, size_t first, std::vector<GraphFinding>* findings);

}  // namespace msprobe
