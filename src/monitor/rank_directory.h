// The directories that the ranks of a monitored run write into.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct RankDirectory {
  std::string path;
  int64_t rank = 0;
  int64_t changed = 0;  // ns since 1970
};

/// "Dec03_21-34-40-rank0-1a2b3c4d" -> 0: a time of at most 20 letters, then the rank.
std::optional<int64_t> RankOfDirectory(std::string_view name);

/// Those in `directory`, by rank; of one rank, the newest first.
StatusOr<std::vector<RankDirectory>> FindRankDirectories(const std::string& directory);

}  // namespace msprobe
