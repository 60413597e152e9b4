// The rules of tensor mode that look at the values: over all inputs and outputs of an op.
#pragma once

#include "compare/values/diff_row.h"

namespace msprobe {

/// Adds the findings of tensor mode to the rows. `inputs_count` is false for ops whose inputs are memory that nobody
/// has written yet: outputs are then not judged against them.
void ApplyTensorRules(bool inputs_count, OpDiff* op);

}  // namespace msprobe
