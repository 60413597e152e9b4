// `msprobe rollout TRAIN ROLLOUT`: why an engine gives other log-probabilities than the trainer it samples for.
#pragma once

#include <string>
#include <vector>

#include "rollout/locator/report.h"

namespace msprobe {

struct RolloutOptions {
  std::vector<std::string> train, rollout, history;  // files and directories; history: checkpoints of earlier steps
  std::string output;                                // "" writes nothing
  int64_t allowed_lag = 0;                           // updates that the engine may be behind
};

StatusOr<RolloutReport> LocateRollout(const RolloutOptions& options);

}  // namespace msprobe
