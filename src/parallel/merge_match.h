// Matching graphs of merged ranks.
#pragma once

#include <string>

#include "base/message.h"
#include "base/status.h"
#include "graph/tree/builder.h"
#include "match/mapping.h"

namespace msprobe {

/// By name, calls by their order. The chunks of a virtual pipeline carry a number ("Module.0.module"), the same model
/// in one piece does not: it is left out of account when only one side has it.
Status MatchMerged(RankGraph* target, RankGraph* golden);

/// By place in the model; what the mapping leaves alone in matched modules, by the order of calls.
/// Returns a warning, or "".
Message MatchMergedLayers(const Mapping& mapping, RankGraph* target, RankGraph* golden);

}  // namespace msprobe
