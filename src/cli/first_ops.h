// The first op of each rank that computes something else in a run of the same program, to the bit.
#pragma once

#include <map>
#include <string>

#include "base/status.h"
#include "compare/describe/differences.h"

namespace msprobe {

/// Steps are those of the dumps.
struct NoticedOp {
  int step = -1;
  FirstDifference difference;
};

/// In the first step in which one differs, by rank ("rank", "rank1"). Sums in another order are other bits here,
/// whatever a comparison of two programs excuses.
StatusOr<std::map<std::string, NoticedOp>> FirstOps(const std::string& target, const std::string& golden,
                                                    const std::string& output);

}  // namespace msprobe
