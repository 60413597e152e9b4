// Two tensors brought to one shape.
#pragma once

#include "weights/weight_pair.h"

namespace msprobe {

/// Without dimensions of 1; one side transposed; the rows that padding adds to a table of words left out. False where
/// the shapes still differ.
bool BringTogether(WeightPair* pair, bool table);

}  // namespace msprobe
