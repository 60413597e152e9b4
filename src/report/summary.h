// What the command says at the end, for people and for programs.
#pragma once

#include <string>

#include "report/compare_report.h"

namespace msprobe {

/// Names kept in a PairReport for each side.
inline constexpr size_t kNamesShown = 5;

Message SummaryText(const CompareReport& report);
std::string SummaryJson(const CompareReport& report);

/// One line: "Functional.linear.7.forward (modeling_llama.py:112): .output.0 Norm differs by 12.3 %, inputs agree to
/// 1e-07".
Message DifferenceLine(const FirstDifference& d);

}  // namespace msprobe
