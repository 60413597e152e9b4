// A rank beside the others, over many steps: each has batches of its own, so only the mean of many says something.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "judge/series_watch.h"

namespace msprobe {

/// Follows how far a rank is from the others, as a difference of logarithms, and tells when its mean changes.
class RankWatch {
 public:
  std::optional<Change> Add(int64_t step, double away, double least);

 private:
  std::vector<double> values_;
  std::vector<int64_t> steps_;
  double told_ = 0;  // strength; a stronger one is told again
};

}  // namespace msprobe
