// The whole of `msprobe compare`: paths are paired, each pair is compared into its result file, the report is returned.
#pragma once

#include <msprobe/compare.h>

#include <string>

#include "report/summary.h"

namespace msprobe {

/// Fails when no pair could be compared; pairs that failed beside others are in the report.
StatusOr<CompareReport> RunCompare(const CompareSettings& request);

/// The plans only: {"paths": .., "matches": [..]}.
StatusOr<std::string> PlanCompare(const CompareSettings& request);

}  // namespace msprobe
