// What the statistics of a part, or of several, are to those of another tensor.
#pragma once

#include <vector>

#include "parallel/merge_stats.h"

namespace msprobe {

/// All four are given and finite.
bool IsComplete(const TensorStats& s);

/// Relative to the amplitude, the norms to each other; what is not given does not count.
bool NearStats(const TensorStats& a, const TensorStats& b, double tolerance);

/// What sums of values that were rounded with this tolerance may be apart by, relatively.
double SumTolerance(double tolerance);

/// Whether `whole` can be the sum of the parts: means add up, extremes and norms do at most.
bool AddUpTo(const std::vector<TensorStats>& parts, const TensorStats& whole, double tolerance);

/// Whether all elements are 0 or 1.
bool IsZerosAndOnes(const TensorStats& s);

}  // namespace msprobe
