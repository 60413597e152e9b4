// Which rank directories become graphs, and which one of the golden dump stands beside each.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "dump/rank_choice.h"

namespace msprobe {

struct MergeJob;

struct GraphPair {
  int step = 0, rank = 0;                                      // as the graph file numbers them
  std::string target_dir, golden_dir;                          // golden_dir is empty in a build
  std::shared_ptr<const MergeJob> target_merge, golden_merge;  // when several ranks become one graph
  int named_step = -1, named_rank = -1;                        // by the directories of the target; -1: they do not say
};

/// Plain data: execution follows it.
struct GraphPlan {
  bool compare = false;
  std::vector<GraphPair> pairs;  // steps in numeric order, ranks in numeric order inside
  std::vector<int> steps, ranks;
  std::vector<Message> warnings;
};

/// `golden` empty: a build. kBadInput when the paths are not dumps, are of different kinds or have no rank or step in
/// common.
StatusOr<GraphPlan> PlanGraph(const std::string& target, const std::string& golden, const RankChoice& ranks = {});
std::string GraphPlanJson(const GraphPlan& plan);

}  // namespace msprobe
