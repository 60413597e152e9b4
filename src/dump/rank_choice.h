// --ranks: which ranks of a run a command looks at.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "dump/reader.h"

namespace msprobe {

class RankChoice {
 public:
  RankChoice() = default;  // all ranks
  /// "0,3,8-15"; "" for all. kUsage for another text.
  static StatusOr<RankChoice> Read(std::string_view text);

  bool all() const { return ranges_.empty(); }
  /// A recording without the number of its rank (-1) is in no choice but that of all.
  bool Holds(int rank) const;
  /// Leaves the chosen ranks of each step. kUsage when none is left.
  Status Apply(DumpPath* path) const;
  /// kUsage: `where` has none of the ranks.
  Status NoneOf(const std::string& where) const;

 private:
  std::string text_;
  std::vector<std::pair<int, int>> ranges_;  // first and last
};

/// "0,3,8-15", as --ranks takes it; of many ranges the first few, and how many ranks there are in all.
std::string RankListText(std::vector<int> ranks);

}  // namespace msprobe
