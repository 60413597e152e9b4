// first_divergence.json, beside the tables.
#pragma once

#include <msprobe/compare.h>

#include <string>

#include "report/summary.h"

namespace msprobe {

inline constexpr const char* kDivergenceFile = "first_divergence.json";

/// Writes the answer of `report` and gives the file's path. The file of an earlier comparison in the same directory is
/// replaced: it is named for its place, the tables carry the time.
StatusOr<std::string> WriteDivergence(const CompareSettings& settings, const CompareReport& report);

}  // namespace msprobe
