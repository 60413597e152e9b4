// The names by which columns and tags of frameworks are known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "curves/curve.h"

namespace msprobe {

/// Which of `names` is the quantity: the user's own, or that which comes first in the list of known ones; none: -1.
int FindCurveName(const std::vector<std::string>& names, CurveKind kind, const CurveNames& own);

/// "step", "iteration", "global_step", ...
int FindStepName(const std::vector<std::string>& names);

}  // namespace msprobe
