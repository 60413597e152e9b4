// The walk over two runs in the order of execution that finds what made the first difference.
#pragma once

#include "compare/first_difference/walk_types.h"

namespace msprobe {

StatusOr<WalkResult> WalkOps(const WalkInput& in);

}  // namespace msprobe
