// The walk over two runs in the order of execution that finds what made the first difference.
#pragma once

#include <string>
#include <vector>

#include "compare/first_difference/differences.h"
#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"

namespace msprobe {

/// What was found; indices only, texts come later.
struct WalkResult {
  FirstDifference first, source;  // kind, op, golden_op, verdict, units, errors
  BigArray<RulerVerdict> verdicts;
  RulerContexts contexts;
  size_t answer_at = 0;  // index in the target behind which ops are infected
};

struct WalkInput {
  const DumpPair& pair;
  const MatchPlan& plan;  // by which `distances` were measured
  const OpDistances& distances;
  const ModuleTree& target_tree;
  const ModuleTree& golden_tree;
  const BigArray<float>* calibrated = nullptr;  // for each golden op, or none
  bool everywhere_other_dtype = false;          // the two runs are of different precision
};

WalkResult WalkOps(const WalkInput& in);

}  // namespace msprobe
