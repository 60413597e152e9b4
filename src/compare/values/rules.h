// The rules that give a row its verdict; they look at all rows of an op together.
#pragma once

#include <string>
#include <string_view>

#include "compare/values/diff_row.h"

namespace msprobe {

void ApplyRules(const DiffOptions& options, OpDiff* op);

/// The worst of its rows; kPass without any.
Verdict VerdictOf(const OpDiff& op);

/// JSON list of the messages of a row, as the column Err_message holds it: "[]" or ["error: ...", ...].
std::string FindingsJson(const OpDiff& op, size_t row);

}  // namespace msprobe
