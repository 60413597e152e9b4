// What the ruler must know before a table is written: a comparison without a table.
#pragma once

#include <string>
#include <vector>

#include "compare/pair/compare.h"

namespace msprobe {

/// How each op of the golden run differs from itself in a second golden run: relative errors of its results, by index
/// in the golden dump; 0 for ops that the second run lacks.
StatusOr<BigArray<float>> Calibrate(const FilePair& golden_pair, const Mapping& mapping);

/// The distances of all ops, from statistics, also of tensor dumps. Leaves the pair set to statistics.
StatusOr<OpDistances> MeasureStatistics(DumpPair* pair);

}  // namespace msprobe
