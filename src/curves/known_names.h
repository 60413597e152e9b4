// The names by which columns and tags of frameworks are known.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "curves/curve.h"

namespace msprobe {

/// Which of `names` is the quantity: the user's own, that which comes first in the list of known ones, or the only
/// one whose words can mean it; none, or columns of several runs: -1.
int FindCurveName(const std::vector<std::string>& names, CurveKind kind, const CurveNames& own);

/// Whether a series counts or measures what is no result of a training: time, tokens, memory.
bool IsOfMachines(std::string_view name);

/// "step", "iteration", "global_step", ...
int FindStepName(const std::vector<std::string>& names);

/// Whether a line, or the name of a member of an entry, tells of a whole run and not of a step: losses beside it are
/// means.
bool IsRunSummary(std::string_view text);

}  // namespace msprobe
