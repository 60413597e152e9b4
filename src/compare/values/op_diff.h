// The comparison of one op with its partner: the rows of a table or a graph, and their verdicts.
#pragma once

#include <string_view>

#include "compare/values/diff_row.h"
#include "compare/values/dtype_match.h"
#include "compare/values/rules.h"

namespace msprobe {

/// Fills `out` from the two JSON objects; `golden` is null for an op without a partner. The views in `out` point into
/// them.
void DiffOps(std::string_view target_name, const JsonValue& target, std::string_view golden_name,
             const JsonValue* golden, const DiffOptions& options, OpDiff* out);

/// The row that shows the op's call stack: the first with an item of the target.
inline size_t StackRow(const OpDiff& op) {
  size_t row = 0;
  while (row < op.rows_used && op.rows[row].golden_only) ++row;
  return row;
}

/// The second half of DiffOps: items stand in `out` (target and golden, with their numbers), and those with one suffix
/// become partners.
void DiffItems(const DiffOptions& options, OpDiff* out);

}  // namespace msprobe
