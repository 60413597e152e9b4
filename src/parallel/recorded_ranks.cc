#include "parallel/recorded_ranks.h"

#include <algorithm>

#include "parallel/merge_groups.h"

namespace msprobe {

StatusOr<std::vector<int>> OneOfEachPlace(const ParallelLayout& layout) {
  MSP_RETURN_IF_ERROR(CheckMergeSettings(layout, "target"));
  std::vector<int> out;
  for (const std::vector<int>& copies : GroupsByOrder(GridOf(layout), {"cp", "dp"}))
    out.push_back(std::ranges::min(copies));
  std::ranges::sort(out);
  return out;
}

}  // namespace msprobe
