// What two optimizers were told and given that differs, before either computes.
#pragma once

#include <string>
#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "optimizer/optimizer_record.h"

namespace msprobe {

struct RecordDifference {
  std::string what;   // "weight_decay", "gradient", "weight"
  Message text;       // a sentence with the values of A and B
  double factor = 1;  // of gradients: those of B are those of A times this
};

/// Hyperparameters of the same weight at the same step, gradients, states before the step, and weights after it in ulp.
/// Of each kind the first is described, and how many there are. kBadInput where no weight has the same name.
StatusOr<std::vector<RecordDifference>> CompareRecords(const OptimizerRecord& a, const OptimizerRecord& b);

}  // namespace msprobe
