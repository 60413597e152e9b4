// Whether two merged runs divide one model over their ranks in the same way.
#pragma once

#include <msprobe/graph.h>

#include "graph/tree/builder.h"

namespace msprobe {

struct LayoutDifference {
  bool divided = false;  // otherwise than the golden run
  double gradients = 1;  // of the target are so many times the golden run's until they are averaged
};

/// By the sizes that were given; sequence parallelism, which has none, by the shapes of what modules take and give.
StatusOr<LayoutDifference> DifferenceOfLayouts(const GraphSettings& settings, const RankGraph& target,
                                               const RankGraph& golden);

}  // namespace msprobe
