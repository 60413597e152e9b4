// Elements of a gradient that are rounding alone, and what an optimizer may make of them.
#pragma once

#include <vector>

#include "parity/part_compare.h"

namespace msprobe {

/// How far off each element of a gradient that is equal up to rounding is, relative to itself and at most 1.
std::vector<double> DoubtOf(const RankParts& parts, const WholeValues& whole, const PartsComparison& found);

/// An optimizer that divides by the size of a gradient makes a whole step of one that is rounding alone, either way.
/// Takes that from the errors of what it has added.
void AllowForDoubt(std::vector<double> doubt, const RankParts& change, const WholeValues& whole,
                   PartsComparison* found);

}  // namespace msprobe
