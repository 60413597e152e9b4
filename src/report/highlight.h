// The colours of -hl in workbooks, by the rules of the older releases.
#pragma once

#include <string>
#include <vector>

#include "compare/op_diff.h"

namespace msprobe {

struct Highlight {
  enum class Color : uint8_t { kNone, kYellow, kRed };
  Color color = Color::kNone;
  std::vector<std::string> reasons;
};

/// One for each row of `op`. Red beats yellow.
std::vector<Highlight> HighlightOp(const OpDiff& op, CompareMode mode);

/// `findings`, a JSON list, with the reasons behind its entries.
std::string WithReasons(std::string findings, const Highlight& highlight);

}  // namespace msprobe
