// What the ruler must know before a table is written: a comparison without a table.
#pragma once

#include <string>
#include <vector>

#include "compare/compare.h"

namespace msprobe {

/// How each op of the golden run differs from itself in a second golden run: relative errors of its results, by index
/// in the golden dump; 0 for ops that the second run lacks.
StatusOr<BigArray<float>> Calibrate(const FilePair& golden_pair, const Mapping& mapping);

/// The context in which the ruler measures each op of the target. Reads statistics only, also of tensor dumps.
StatusOr<RulerContexts> ContextsOf(const FilePair& files, const Mapping& mapping, const Thresholds& thresholds,
                                   const BigArray<float>* calibrated);

}  // namespace msprobe
