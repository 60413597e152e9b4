// Calls that are given one tensor at several of their places.
#pragma once

#include "compare/pair/dump_pair.h"

namespace msprobe {

/// Whether all that differs in the results of a backward op is this: one run shows the gradient of all places at each
/// place of one tensor, as dumps of MindSpore may, and the other run the share of each. Where the shares are alike, the
/// first is as many times as large as there are places; else it has the mean of their sum and is no larger.
StatusOr<bool> IsWholeAtEachPlace(const DumpPair& pair, size_t op, uint32_t partner, double tolerance);

}  // namespace msprobe
