// Recorded ids, decoded and encoded again by the tokenizer of the run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "config/settings.h"

namespace msprobe {

/// Rows of ids of the first recorded batches.
using TokenRows = std::vector<std::vector<int64_t>>;

/// Adds to the settings of the tokenizer in `out` how many of the ids it has no token for, and, where a Python with its
/// library is there, the share that comes back when they are decoded and encoded. Nothing without a tokenizer or rows.
Status AddRoundTrip(const TokenRows& rows, Configuration* out);

}  // namespace msprobe
