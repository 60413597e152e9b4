// Which op made a value that comes in somewhere else.
#pragma once

#include <string>

#include "compare/first_difference/walk_types.h"
#include "compare/pair/dump_pair.h"
#include "compare/values/item_view.h"

namespace msprobe {

/// Of a difference that comes in at an op and that no op in front of it seems to make. An op that only one run has, or
/// that changes its argument in one run only, and whose result is the very value that comes in, made it, however far
/// back it stands; of the gradient of a parameter, what leads to it agrees, an op that only one run has and that uses
/// the parameter. Where the value holds infinities, whose places statistics do not show, the op that put them in is
/// where to look.
Status FindMaker(const WalkInput& in, WalkResult* walk);

/// Of a value that comes in, and that neither FindMaker() nor ops that are no partners explain: a call in front of it
/// with another argument is the answer, though what it gives agrees.
Status BlameIdle(const WalkInput& in, WalkResult* walk);

/// Names the recorded ops whose results came in, in the target and in the golden run, where they are not partners.
Status NameMakers(const DumpPair& pair, const MatchPlan& plan, const ItemView& own, const ItemView& golden,
                  FirstDifference* out);

}  // namespace msprobe
