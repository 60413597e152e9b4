// Copies of a parameter on several ranks that were equal a step before and no longer are.
#pragma once

#include <optional>
#include <vector>

#include "diagnose/divergence.h"

namespace msprobe {

/// The first parameter, in the order of execution, whose copies part in the target between two steps. Copies are what
/// is equal on several ranks of the golden run, and was on the same of the target. Ranks are named whose copy is
/// further from that of the golden run than rounding of the step moved the parameters that did not part. Nothing where
/// no copy does, so that the difference is one of the whole step.
StatusOr<std::optional<Origin>> PartedCopy(const std::vector<FilePair>& now, const std::vector<FilePair>& before);

}  // namespace msprobe
