// Pairs of weights cut into units of work: boxes of a few megabytes that lie in one file on each side.
#pragma once

#include <vector>

#include "weights/checkpoint.h"
#include "weights/weight_pair.h"

namespace msprobe {

struct DiffUnit {
  size_t pair = 0;
  WeightBlock a, b;  // the same box of both
};

/// Together all elements that both sides hold, pair by pair in the order in which A's lie in its files.
std::vector<DiffUnit> CutUnits(const std::vector<WeightPair>& pairs);

/// What a unit adds to its pair. Elements not finite on either side count as zeros in the sums.
struct UnitSums {
  int64_t count = 0, equal = 0, differ = 0;  // differ: NaN or infinite on one side only
  double products = 0, squares_a = 0, squares_b = 0, squares_diff = 0;
  double max_abs = 0, max_rel = 0, max_ulp = 0, tolerance = 0, largest = 0;
  double excess =
      0;  // the most that an element is apart beyond what rounding to the coarser type allows; see ulp_loop.h
  bool identical = true;           // the same type and bits
  int64_t first = -1, worst = -1;  // elements of the box, in C order; -1 where none differs
  double first_a = 0, first_b = 0, worst_a = 0, worst_b = 0, worst_abs = -1;
};
UnitSums MeasureUnit(const DiffUnit& unit, double plus_a, double plus_b);

}  // namespace msprobe
