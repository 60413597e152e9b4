// Communication that does not fit together: what makes a step hang, fail, or compute nonsense.
#pragma once

#include <vector>

#include "graph/comm/findings.h"
#include "graph/comm/links.h"

namespace msprobe {

/// Of one step and side; `ranks` are sorted and `graph` joins them. Ranks without a dump are no finding: partners there
/// are not looked for.
std::vector<GraphFinding> CheckCommunication(const std::vector<RankNodeCalls>& ranks, const CommGraph& graph);

}  // namespace msprobe
