// A loop over the elements of two tensors, beside the kernels: for a metric that needs what they do not sum up.
#pragma once

#include <array>
#include <cstddef>

namespace msprobe {

struct LoopSums {
  std::array<double, 4> at{};  // zeros to begin with; what they mean is the loop's affair
};

struct PairLoop {
  /// Adds the next elements, a few thousand at most, that the kernels have just read; they come in any order, of all
  /// dtypes as doubles. Complex ones come by their absolute value, those not finite on either side as zeros on both.
  void (*add)(const double* target, const double* golden, size_t n, LoopSums* sums);
  /// Joins what two parts of the tensors gave, or `times` parts like `from`; the order of parts is always the same.
  void (*merge)(const LoopSums& from, double times, LoopSums* to);
};

/// The merge() of sums and counts.
inline void AddSums(const LoopSums& from, double times, LoopSums* to) {
  for (size_t i = 0; i < from.at.size(); ++i) to->at[i] += times * from.at[i];
}

}  // namespace msprobe
