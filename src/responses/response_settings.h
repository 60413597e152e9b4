// The yaml of thresholds, with the keys of the earlier tool.
#pragma once

#include <string>

#include "base/status.h"
#include "responses/anomaly.h"

namespace msprobe {

/// All keys must be there. kBadInput with the key, its value and what is allowed.
StatusOr<ResponseLimits> ReadResponseLimits(const std::string& path);

}  // namespace msprobe
