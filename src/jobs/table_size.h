// How large the tables of a comparison will be, before anything is compared.
#pragma once

#include <msprobe/compare.h>

#include "match/path_plan.h"

namespace msprobe {

/// About so many bytes: rows of the first pair are counted, and the others are of their dumps' size.
StatusOr<uint64_t> EstimateTables(const CompareSettings& request, const PathPlan& plan);

}  // namespace msprobe
