// The curves that a training prints into its log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

/// A number as a log prints it, and half a unit of its last digit.
struct LoggedNumber {
  double value = 0, half_digit = 0;
};

struct LoggedStep {
  int64_t number = -1;  // as it is printed; where no number is, the place in the log from 1
  LoggedNumber loss;
  std::optional<LoggedNumber> gradient_norm, learning_rate;
};

struct TrainingLog {
  std::string path;
  std::vector<LoggedStep> steps;  // by number, of one number the last
};

inline constexpr size_t kMostLogBytes = size_t{256} << 20;

/// Lines that hold a loss: of Megatron ("lm loss: 3.9E+00"), MindFormers ("loss: 3.9"), Hugging Face ({'loss': 3.9}),
/// plain "step 1 loss 3.9", csv with a column of that name. No steps where there is none.
TrainingLog ReadTrainingLog(std::string_view text, const std::string& path);

}  // namespace msprobe
