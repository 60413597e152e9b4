// The colours of -hl in workbooks, by the rules of the older releases.
#pragma once

#include <string>
#include <vector>

#include "compare/metrics/metric.h"
#include "compare/values/op_diff.h"
#include "sheet/cell.h"

namespace msprobe {

struct Highlight {
  Cell::Color color = Cell::Color::kNone;
  std::vector<std::string> reasons;
};

/// One for each row of `op`. Red beats yellow.
std::vector<Highlight> HighlightOp(const OpDiff& op, CompareMode mode);

/// Marks a result whose number is worse than that of the inputs by more than the metric allows; NaN where there is
/// none.
void MarkWorse(const Metric& metric, double inputs, double output, Highlight* row);

/// `findings`, a JSON list, with the reasons behind its entries.
std::string WithReasons(std::string findings, const Highlight& highlight);

}  // namespace msprobe
