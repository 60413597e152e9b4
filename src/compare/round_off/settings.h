// Settings of functions that two frameworks have in common.
#pragma once

#include "compare/values/diff_row.h"

namespace msprobe {

/// Whether item `a` of an op is a setting that both frameworks have, and another one in `b`: an axis, whatever end it
/// is counted from, an epsilon, a form. `b` is null where the other call does not give it.
bool SettingDiffers(const OpDiff& op, const ItemView& a, const ItemView* b);

/// Of an operator of two frameworks ("__truediv__") the operand that is a number in one run and a tensor of several
/// elements in the other, or another number: an index among the target's items, `rows_used` for none.
size_t OtherOperand(const OpDiff& op);

/// As people write it: six digits tell all of it, but for what float32 rounds.
bool IsWritten(double v);

}  // namespace msprobe
