// The rules that give a row its verdict; they look at all rows of an op together.
#pragma once

#include "compare/op_diff.h"

namespace msprobe {

void ApplyRules(const DiffOptions& options, OpDiff* op);

}  // namespace msprobe
