// How large the file of the graphs of many ranks will be, before it is written.
#pragma once

#include <msprobe/graph.h>

#include "graph/tree/graph_plan.h"

namespace msprobe {

/// Of the ranks that the settings choose.
StatusOr<GraphPlan> PlanGraph(const GraphSettings& settings);
/// The same for a file that is written now: tells settings.before of many graphs; kUsage where they are more than
/// settings.out_limit.
StatusOr<GraphPlan> PlanBoundedGraph(const GraphSettings& settings);

}  // namespace msprobe
