// The settings of an optimizer, whatever ops its step is made of.
#pragma once

#include <string>
#include <vector>

#include "compare/describe/differences.h"
#include "compare/first_difference/optimizer_intake.h"
#include "compare/first_difference/walk_types.h"
#include "compare/pair/dump_pair.h"

namespace msprobe {

/// lr, beta1, beta2, eps, momentum, and how much a step takes off a weight.
struct OptimizerSetting {
  std::string name;
  double value = 0;
  size_t op = 0;  // of the dump, from whose arguments it follows
};

/// Of the ops behind the last backward pass: a fused step has them as arguments, a loop over parameters and the
/// functions for lists as the numbers that their ops are given. Those that do not follow from these are not there.
StatusOr<std::vector<OptimizerSetting>> OptimizerSettingsOf(const DumpFile& dump);

/// What two steps of different ops have to do with each other.
struct OptimizerForms {
  bool differ = false;                 // the runs step by different ops; else their arguments are compared anyway
  bool same_settings = false;          // and all settings are known, and the same: two forms of one step
  OneSteps one_steps = OneSteps::kNo;  // only one run changes weights
  bool again = false;                  // one run does the whole step once more
  bool one_sided = false;              // the step of one run has all that the other's has
  size_t begin = 0;                    // of the target's step
  FirstDifference setting;             // the first that differs; kNone where none does
  FirstDifference decay;               // of parameters that only one of them decays; kNone where there are none
  FirstDifference parameter;           // that only one of them changes; kNone where there is none
  FirstDifference intake;              // of what they take in (optimizer_intake.h); kNone where nothing differs
};
/// `parted`: the answer so far is that shapes differ in the step.
StatusOr<OptimizerForms> CompareOptimizers(const DumpPair& pair, const MatchPlan& plan, bool parted);

/// Where an argument of an op of the step differs, it becomes the setting that it is made of: "lr", not the number that
/// a division is scaled by.
Status NameSetting(const DumpPair& pair, FirstDifference* found);

/// A setting that differs, or a parameter that is left out, joins the answer of the walk; ops that only make another
/// form of the same step leave it.
void WeighOptimizers(OptimizerForms forms, const WalkResult& walk, Differences* out);

}  // namespace msprobe
