// What the walk over two runs is given, and what it finds.
#pragma once

#include <string>
#include <vector>

#include "base/slot_table.h"
#include "compare/describe/differences.h"
#include "compare/first_difference/one_sided.h"
#include "compare/pair/dump_pair.h"
#include "compare/pair/module_tree.h"

namespace msprobe {

/// What was found; indices only, texts come later.
struct WalkResult {
  FirstDifference first, source;  // kind, op, golden_op, verdict, units, errors
  BigArray<RulerVerdict> verdicts;
  RulerContexts contexts;
  std::vector<uint32_t> own_ops, golden_own_ops;  // that one run has more, and that are not known as another way
  bool draws_alike = false;                       // some random numbers are the same in both runs
  size_t idle = SIZE_MAX;                         // a call with another argument in front of it that changes nothing
  size_t idle_more = 0;                           // calls of the same function behind that whose argument differs, too
  size_t answer_at = 0;                           // index in the target behind which ops are infected
};

struct WalkInput {
  const DumpPair& pair;
  const MatchPlan& plan;  // by which `distances` were measured
  const OpDistances& distances;
  const ModuleTree& target_tree;
  const ModuleTree& golden_tree;
  const BigArray<float>* calibrated = nullptr;  // for each golden op, or none
  bool everywhere_other_dtype = false;          // the two runs are of different precision
  std::vector<OneSidedModule> one_sided = {};
  TextIds other_forms = {};  // calls of modules that hold their weights in another form than their partners
};

}  // namespace msprobe
