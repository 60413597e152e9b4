// The whole of `msprobe compare`: paths are paired, each pair is compared into its result file, the report is returned.
#pragma once

#include <functional>
#include <string>

#include "report/summary.h"

namespace msprobe {

struct CompareRequest {
  std::string target, golden, output;
  bool xlsx = false;
  bool fuzzy = false;
  std::function<void(const std::string& label, double share)> progress;  // may be empty
};

/// Fails when no pair could be compared; pairs that failed beside others are in the report.
StatusOr<CompareReport> RunCompare(const CompareRequest& request);

/// The plans only: {"paths": .., "matches": [..]}.
StatusOr<std::string> PlanCompare(const CompareRequest& request);

}  // namespace msprobe
