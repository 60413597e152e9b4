// The first-difference analysis of the older tool (-da): which ops differ by its thresholds, and the first of them.
#pragma once

#include <string>
#include <vector>

#include "compare/values/op_diff.h"
#include "diagnose/communication.h"
#include "match/path_plan.h"

namespace msprobe {

/// False when an output's relative error is above one half, or its checksum another one.
bool IsSameByThresholds(const OpDiff& op, CompareMode mode);

/// What one rank brings to the analysis.
struct RankSuspects {
  FilePair files;
  RankCalls calls;
  std::vector<size_t> ops;  // that differ by the thresholds, in order; without those whose values mean nothing
};
/// `same`: one entry for each op of the dump.
StatusOr<RankSuspects> SuspectsOf(const DumpFile& dump, const FilePair& files, const std::vector<bool>& same);

struct Suspect {
  FilePair files;
  size_t op = 0;
};
/// The first that differ: on every rank that does so before it communicates at all; else those that are first in the
/// time that ranks share; else, behind all communication, the first of each rank. By rank.
std::vector<Suspect> FirstSuspects(std::vector<RankSuspects> ranks);

}  // namespace msprobe
