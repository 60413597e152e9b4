// The verdicts as release 8.x names them.
#pragma once

#include <string>
#include <string_view>

#include "compare/values/op_diff.h"

namespace msprobe {

/// The verdict of release 8.x on a row: "Yes", "No", "None" or "Unmatched" of tensors, "Pass" or "Different" of
/// checksums, that of OlderStatistics() otherwise.
std::string_view OlderVerdict(const OpDiff& op, size_t row, CompareMode mode);

inline constexpr std::string_view kNoBenchData = "No bench data matched.";
bool IsUnmatched(const DiffRow& row);

/// What release 8.x says of a row of statistics: "Warning" where one is off by half of the larger value, "" otherwise,
/// and a sentence.
struct OlderResult {
  std::string_view verdict;
  std::string message;
};
OlderResult OlderStatistics(const OpDiff& op, size_t row);

/// "Yes", "No", "None" or "Unmatched": by cosine and largest error.
std::string_view AccuracyText(const TensorDiff& diff);

}  // namespace msprobe
