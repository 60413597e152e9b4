// What a script sets and no training makes: a learning rate, the factor of the loss. It stays or moves smoothly, so a
// jump is seen at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "judge/series_watch.h"

namespace msprobe {

class GivenWatch {
 public:
  /// A value that differs from the one before by far more than those of the steps before did; how sure it is says
  /// who tells it.
  std::optional<Change> Add(int64_t step, double value);

 private:
  std::vector<double> moves_;  // the last few, on the logarithm
  double last_ = 0;
};

/// Whether the rows of a table are such values.
bool IsSetByScript(std::string_view table);
/// Whether they are what a training is given: set by the script, or the batch.
bool IsGiven(std::string_view table);

}  // namespace msprobe
