// Whether an optimizer did what its hyperparameters say, and which term is another where it did not.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"
#include "optimizer/optimizer_findings.h"
#include "optimizer/optimizer_record.h"

namespace msprobe {

struct OptimizerReplay {
  std::string path, optimizer;
  OptimizerKind kind = OptimizerKind::kUnknown;
  std::vector<StepNorm> steps;
  std::vector<ReplayedWeight> weights;
  std::vector<TermFinding> findings;
  std::vector<Message> notes;
  std::vector<Message> unjudged;  // why no term is named: the formula of the class is not known
  std::vector<Message> cautions;  // those notes that say what the weights cannot do

  bool clean() const { return findings.empty(); }
};

/// kBadInput where the record lacks what the rule needs.
StatusOr<OptimizerReplay> ReplayOptimizer(const OptimizerRecord& record);

}  // namespace msprobe
