// The curves of a training, step by step.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "curves/curve.h"

namespace msprobe {

/// A number as a file holds it, and half a unit of its last digit.
struct LoggedNumber {
  double value = 0, half_digit = 0;
};

struct LoggedStep {
  int64_t number = -1;  // as it is printed
  LoggedNumber loss;
  std::optional<LoggedNumber> gradient_norm, learning_rate;
};

struct TrainingLog {
  std::string path;
  std::vector<LoggedStep> steps;  // by number
  Curve loss;                     // the same losses as a curve, for the band
};

/// Whether its training ran with a learning rate of 0: it says so at each step, or, where it prints none, by the name
/// that the doctor gives such logs.
bool IsFrozen(const TrainingLog& log);

/// Of whatever file `msprobe curves` reads. kBadInput where it has no loss.
StatusOr<TrainingLog> ReadTrainingLog(const std::string& path);

}  // namespace msprobe
