// A loss that has learned and then climbs, a little at each step, for long: no single step of it stands out.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "judge/series_watch.h"

namespace msprobe {

class LossClimb {
 public:
  /// A climb that is as sure as `alarm` (-log10 of the probability): steady, from a level that stood and was below that
  /// of the first losses, and far beyond what the loss did while it stood.
  std::optional<Change> Add(int64_t step, double value, double alarm);

 private:
  std::optional<Change> Look(size_t blocks, double alarm) const;

  std::vector<double> open_;    // losses of the block that is not full, on the logarithm
  std::vector<double> blocks_;  // medians, the newest at the end
  std::vector<int64_t> steps_;  // where each begins
  std::optional<double> first_;
  int64_t begins_ = 0;
};

}  // namespace msprobe
