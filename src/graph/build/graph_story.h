// What is wrong with the run that graph_visualize shows, over all of its graphs.
#pragma once

#include <functional>
#include <optional>
#include <string>

#include "base/message.h"
#include "diagnose/story/story_finder.h"
#include "graph/build/graph_summary.h"
#include "graph/tree/graph_plan.h"

namespace msprobe {

/// The dumps of a pair, as `compare` would name them.
FilePair FilesOf(const GraphPair& pair);

/// Where NaN and infinities are looked for. A dump that cannot be searched (a damaged rank) is a warning: the graph
/// shows what there is.
struct OverflowSearch {
  std::string target, golden;  // paths of the dumps; golden is empty for one run by itself
  std::function<void(const Message&)> warning;
};

/// Fills the summary's story and first difference. `values`: the graphs were compared by values.
Status FinishStory(StoryFinder* finder, bool values, const std::optional<OverflowSearch>& overflow,
                   GraphSummary* summary);

}  // namespace msprobe
