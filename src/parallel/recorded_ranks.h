// Which ranks of a large run are worth recording.
#pragma once

#include <msprobe/graph.h>

#include <vector>

#include "base/status.h"

namespace msprobe {

/// The first rank of each place in the model: tensor, pipeline and expert parallel ranks hold different parts, context
/// and data parallel ones hold copies. kUsage for a layout that cannot be.
StatusOr<std::vector<int>> OneOfEachPlace(const ParallelLayout& layout);

}  // namespace msprobe
