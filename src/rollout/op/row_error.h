// How far rows of one side are from those of the other, and how far rounding may take them.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "rollout/op/side_ops.h"

namespace msprobe {

/// Relative to the row of `expected`; rows that are nearly zero are held against the usual row.
struct RowErrors {
  double largest = 0, mean = 0;
  size_t worst = 0;  // the row of the largest one
  std::vector<double> rows;
};
RowErrors ErrorsOf(const RowMatrix& values, const RowMatrix& expected);

/// What the rounding of one operation may add to such an error: the types that either side stores it in.
double RoundingFloor(DType a, DType b);

/// The coarser of two types.
DType CoarserOf(DType a, DType b);

/// The number of columns that both have: an engine may fill up its vocabulary.
void CutToCommon(RowMatrix* a, RowMatrix* b);

/// Whether all values are numbers of a type with fewer digits than the one that they are stored in: kFloat16 or
/// kBFloat16; kUnknown where they are not.
DType GridOf(const RowMatrix& values);

}  // namespace msprobe
