// The plan for two dumps under the user's mapping.
#pragma once

#include "match/dump_ops.h"
#include "match/mapping.h"
#include "match/match_plan.h"

namespace msprobe {

/// kUsage when the mapping does not fit the frameworks; kBadInput when a mapping names nothing that is in the dumps, or
/// a file that it needs (construct.json of -lm) is not there.
StatusOr<MatchPlan> MatchDumps(const DumpFile& target, const DumpFile& golden, const Mapping& mapping);

}  // namespace msprobe
