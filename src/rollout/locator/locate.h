// `msprobe rollout TRAIN ROLLOUT`: why an engine gives other log-probabilities than the trainer it samples for.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "judgement/judgement.h"
#include "rollout/evidence.h"
#include "rollout/stage.h"

namespace msprobe {

struct RolloutOptions {
  std::vector<std::string> train, rollout, history;  // files and directories; history: checkpoints of earlier steps
  std::string output;                                // "" writes nothing
  int64_t allowed_lag = 0;                           // updates that the engine may be behind
};

struct RolloutReport {
  SideEvidence train, rollout;
  std::vector<TokenGap> gaps;
  std::optional<double> kl;                 // k3, mean over `gaps`
  std::vector<RolloutStageResult> results;  // of all stages, in their order
  std::vector<std::string> files;           // written
};

StatusOr<RolloutReport> LocateRollout(const RolloutOptions& options);

std::vector<Judgement> JudgementsOf(const RolloutReport& report);
Message RolloutHeadline(const RolloutReport& report);
Message RolloutText(const RolloutReport& report);
std::string RolloutJson(const RolloutReport& report);

}  // namespace msprobe
