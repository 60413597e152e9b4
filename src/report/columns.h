// The columns of the comparison tables.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compare/op_diff.h"
#include "diagnose/replay_result.h"

namespace msprobe {

inline constexpr std::string_view kNotAvailableCell = "N/A";

/// Columns beyond those that every table has.
struct MoreColumns {
  bool ruler = false, replay = false;
  bool older = false;  // verdicts as release 8.x names them
};
/// `custom` are the names of the user's own metrics, in tensor mode.
std::vector<std::string_view> TableColumns(CompareMode mode, bool with_stack,
                                           const std::vector<std::string>& custom = {}, const MoreColumns& more = {});

/// The verdict of release 8.x on a row: "Yes", "No", "None" or "Unmatched" of tensors, "Pass" or "Different" of
/// checksums, that of OlderStatistics() otherwise.
std::string_view OlderVerdict(const OpDiff& op, size_t row, CompareMode mode);

/// What release 8.x says of a row of statistics: "Warning" where one is off by half of the larger value, "" otherwise,
/// and a sentence.
struct OlderResult {
  std::string_view verdict;
  std::string message;
};
OlderResult OlderStatistics(const OpDiff& op, size_t row);

/// The cell of a relative error in release 8.x: "N/A" against zero.
std::string OlderRelative(const StatDiff& diff, const StatValue& golden);

/// "Yes", "No", "None" or "Unmatched": by cosine and largest error.
std::string_view AccuracyText(const TensorDiff& diff);

/// Three cells: what a replay says of a row, and how far either side is from the truth.
using ReplayCells = std::array<std::string, 3>;
class ReplayLookup {
 public:
  /// Of the ops of `target_dump`; `replays` may be null and outlives the object.
  ReplayLookup(const std::vector<ReplayedOp>* replays, const std::string& target_dump);
  bool active() const { return active_; }
  ReplayCells Cells(const OpDiff& op, size_t row) const;

 private:
  bool active_;
  std::unordered_map<std::string_view, const ReplayedOp*> ops_;
};

/// A number of the ruler: three digits, "inf" beyond all numbers, "N/A" for rows that it does not measure.
std::string RulerText(double value, const RulerCell& cell);

/// The two files of a row, as Python writes a list.
std::string DataNameCell(std::string_view target, std::string_view golden);

}  // namespace msprobe
