// What a replay says of the rows of a table.
#pragma once

#include <array>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compare/values/op_diff.h"
#include "diagnose/replay_result.h"

namespace msprobe {

/// Three cells: the verdict on a row, and how far either side is from the truth.
using ReplayCells = std::array<std::string, 3>;

class ReplayLookup {
 public:
  /// Of the ops of `target_dump`; `replays` may be null and outlives the object.
  ReplayLookup(const std::vector<ReplayedOp>* replays, const std::string& target_dump);
  ReplayCells Cells(const OpDiff& op, size_t row) const;

 private:
  std::unordered_map<std::string_view, const ReplayedOp*> ops_;
};

}  // namespace msprobe
