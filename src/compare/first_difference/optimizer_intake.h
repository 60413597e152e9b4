// What the step of an optimizer takes in: how many parameters, in which order, by which algorithm, and clipped or not.
#pragma once

#include <cstdint>

#include "compare/describe/differences.h"
#include "compare/first_difference/walk_types.h"
#include "compare/pair/dump_pair.h"

namespace msprobe {

/// What comes into the step scaled, where only one run takes the norm of it before: the answer becomes that norm,
/// without its texts. False where it is not so.
StatusOr<bool> BlameClipping(const DumpPair& pair, const MatchPlan& plan, const WalkResult& walk, Differences* out);

/// Whether only one run changes weights behind its backward pass. kUnrecorded: no op of the other one does, but the
/// same weights are in it later.
enum class OneSteps : uint8_t { kNo, kYes, kUnrecorded };
StatusOr<OneSteps> OnlyOneSteps(const DumpPair& pair);

/// Steps by different algorithms, of another number of parameters or in another order, by the ops that change a weight;
/// kNone where none differs or the ops do not tell. `item` is ".algorithm", ".parameters", ".updates" (of parameters
/// that are changed twice), ".decays", ".order" or
/// ".norms" (gradients that are clipped by one norm).
StatusOr<FirstDifference> CompareIntake(const DumpPair& pair, const MatchPlan& plan);

}  // namespace msprobe
