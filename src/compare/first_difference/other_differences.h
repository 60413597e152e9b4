// Differences behind the first one that cannot come from it.
#pragma once

#include <vector>

#include "compare/first_difference/walk_types.h"

namespace msprobe {

/// Parameters that differ before an optimizer step of this run could have changed them, and settings, in the forward
/// pass and in the optimizer's; where data came in, other data that no op made; where dumps show every bit, also ops
/// that give other results for equal inputs. At most some, one for each parameter's module and each kind of op.
StatusOr<std::vector<FirstDifference>> OtherDifferences(const WalkInput& in, const WalkResult& walk);

/// Leaves out what is told already: one setting that several ops of a step are given, and ops that one run has more in
/// a line of the source that has one of these.
void DropRepeated(Differences* out);

/// Ops behind the answer that differ by more than round-off, by module.
void CountInfected(const WalkInput& in, const WalkResult& walk, Differences* out);

}  // namespace msprobe
