// Ops that a recording that is not whole lacks: whether its run had them is not known.
#pragma once

#include <vector>

#include "dump/gaps.h"
#include "match/match_dumps.h"

namespace msprobe {

/// Takes out of `plan`, a plan of both dumps, the ops without a partner that the other side may have had: behind its
/// last op, or wherever it may have lost some. They are no difference. `gaps` are those of both sides.
void LeaveOutUnseen(const std::vector<RecordingGap>& gaps, const DumpFile& target, const DumpFile& golden,
                    MatchPlan* plan);

}  // namespace msprobe
