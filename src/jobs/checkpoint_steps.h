// A step of an optimizer out of what checkpoints hold: weights and states before and after it, and its gradients.
#pragma once

#include <string>

#include "base/status.h"
#include "optimizer/optimizer_record.h"

namespace msprobe {

struct CheckpointStepPaths {
  std::string before, after, gradients;  // checkpoints of any format; the gradients under the names of the weights
};

/// The rule and its hyperparameters come from `overrides`: checkpoints do not hold them in one form. kBadInput where
/// states cannot be assigned to weights.
StatusOr<OptimizerRecord> ReadCheckpointStep(const CheckpointStepPaths& paths, const OptimizerOverrides& overrides);

}  // namespace msprobe
