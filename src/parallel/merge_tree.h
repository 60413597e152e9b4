// From the graphs of the ranks of one unit to the tree of the merged graph, as a plan: which node of which rank goes
// where, under which name, and whose data it shows.
#pragma once

#include <memory>
#include <vector>

#include "parallel/merge_data.h"
#include "parallel/merge_decisions.h"
#include "parallel/merge_groups.h"

namespace msprobe {

/// `graphs` are those of the unit's ranks, stage by stage, cell by cell; they are used up.
StatusOr<RankGraph> MergeRanks(const ParallelLayout& settings, const MergeUnit& unit, MergeLayout layout,
                               std::vector<std::unique_ptr<RankGraph>> graphs, MergeDecisions* decisions);

}  // namespace msprobe
