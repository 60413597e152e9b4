// `msprobe optimizer_replay A [B]`: did the optimizer do what its hyperparameters say, and do both sides say the same?
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "judgement/judgement.h"
#include "optimizer/compare_records.h"
#include "optimizer/replay_optimizer.h"

namespace msprobe {

struct OptimizerReplayRequest {
  std::string a, b;       // records; b may be empty
  std::string gradients;  // given: a and b are checkpoints before and after one step, this has its gradients
  OptimizerOverrides overrides;
  std::string output;  // file of the result as JSON; "" writes none
};

struct OptimizerReplayReport {
  OptimizerReplay a;
  std::optional<OptimizerReplay> b;
  std::vector<RecordDifference> differences;  // of what both sides were told and given

  /// Each side did what its hyperparameters say, and neither was told otherwise than the other.
  bool clean() const;
};

StatusOr<OptimizerReplayReport> ReplayOptimizerRecords(const OptimizerReplayRequest& request);

std::vector<Judgement> JudgementsOf(const OptimizerReplayReport& report);

std::string OptimizerReplayJson(const OptimizerReplayReport& report);
Message OptimizerReplayText(const OptimizerReplayReport& report);

}  // namespace msprobe
