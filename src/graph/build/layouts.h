// Whether two merged runs divide one model over their ranks in the same way.
#pragma once

#include <msprobe/graph.h>

#include "graph/tree/builder.h"
#include "parallel/layout_difference.h"

namespace msprobe {

/// By the sizes that were given; sequence parallelism, which has none, by the shapes of what modules take and give.
StatusOr<LayoutDifference> DifferenceOfLayouts(const GraphSettings& settings, const RankGraph& target,
                                               const RankGraph& golden);

}  // namespace msprobe
