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

/// One optimizer of a process, on one side or both.
struct ReplayedPair {
  std::string name;  // "rank0/optimizer1"
  OptimizerReplay a;
  std::optional<OptimizerReplay> b;
  std::vector<RecordDifference> differences;  // of what both sides were told and given

  /// Each side did what its hyperparameters say, and neither was told otherwise than the other.
  bool clean() const;
};

struct OptimizerReplayReport {
  std::vector<ReplayedPair> pairs;  // at least one
  std::vector<Message> unread;      // optimizers that cannot be judged: of another formula, or on one side alone

  bool clean() const;
  bool undecided() const;
};

/// Rounding of what both sides were given is no finding; that the gradients of one are a multiple of the other's is.
bool IsFinding(const RecordDifference& difference);

StatusOr<OptimizerReplayReport> ReplayOptimizerRecords(const OptimizerReplayRequest& request);

std::vector<Judgement> JudgementsOf(const OptimizerReplayReport& report);

std::string OptimizerReplayJson(const OptimizerReplayReport& report);
Message OptimizerReplayText(const OptimizerReplayReport& report);

}  // namespace msprobe
