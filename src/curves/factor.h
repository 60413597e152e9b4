// A factor between two curves that stays: a quantity that one side does not divide, or sums up.
#pragma once

#include <optional>

#include "curves/difference.h"

namespace msprobe {

/// b / a where it is a whole number, or one divided by a whole number, at nearly all steps, and not 1; `scatter` is how
/// far a step may be from it.
std::optional<double> FactorBetween(const CurvePair& pair, double scatter);

}  // namespace msprobe
