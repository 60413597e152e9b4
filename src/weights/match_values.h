// Weights whose names say nothing, paired by shape and values.
#pragma once

#include <vector>

#include "weights/roles.h"
#include "weights/weight_pair.h"

namespace msprobe {

/// Pairs of indices into `a` and `b`, with how. Reads a few thousand elements of each tensor at most.
struct ValueMatch {
  size_t a, b;
  MatchedBy by;
};
/// `by_place`: what values do not pair is paired by its place, where both sides have as many of a shape.
std::vector<ValueMatch> MatchByValues(const std::vector<RoleTensor>& a, const std::vector<RoleTensor>& b,
                                      bool by_place);

}  // namespace msprobe
