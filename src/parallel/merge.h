// Merging the graphs of the ranks of a run: which ranks become one graph, the graph itself, the plan as JSON.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "compare/values/thresholds.h"
#include "graph/tree/graph_plan.h"
#include "parallel/layout_difference.h"
#include "parallel/merge_data.h"
#include "parallel/merge_groups.h"
#include "parallel/merge_tree.h"

namespace msprobe {

/// Ranks of one step that become one graph.
struct MergeJob {
  ParallelLayout settings;
  MergeUnit unit;
  std::vector<std::string> dirs;  // of the unit's ranks, stage by stage
  std::string layout_file;
  int rank() const { return unit.stages[0][0]; }
};

/// The groups of one step of one side, for the printed plan.
struct MergeSide {
  std::string side;  // "target" or "golden"
  int step = 0;
  ParallelLayout settings;
  MergeGroups groups;
};

struct MergePlan {
  GraphPlan graph;  // its pairs carry the jobs
  std::vector<MergeSide> sides;
};

/// `settings` has target_layout (and golden_layout in a comparison). kBadInput when there are other ranks than the
/// settings say or the sides give another number of graphs; kUsage when the settings cannot be.
StatusOr<MergePlan> PlanMerge(const GraphSettings& settings);

/// Opens the ranks of a job, builds their graphs and merges them.
StatusOr<RankGraph> BuildMergedGraph(const MergeJob& job, MergeDecisions* decisions);

/// Every node of the graph read and checked against the layout.
StatusOr<std::vector<MergeFinding>> CheckMerge(const RankGraph& graph);

/// The plan with the decisions and the findings of all its graphs; builds them one after another and writes nothing.
StatusOr<std::string> MergePlanJson(const GraphSettings& settings);

/// construct.json, dump.json and stack.json of a merged graph, as one rank would have written them.
Status WriteMergedDump(const RankGraph& graph, const std::string& dir);
enum class ModelDump : uint8_t {
  kMatched,  // of the nodes that have a partner
  kWhole,    // of all nodes; parameters of several ranks have no shapes, which are those of a part
};
/// The same without stacks.
Status WriteModelDump(const RankGraph& graph, ModelDump which, const std::string& dir);

/// Two merged graphs whose nodes are matched.
struct MergedPair {
  const RankGraph &target, &golden;
  LayoutDifference layouts;
  const Thresholds* thresholds;
};
/// WriteModelDump of the matched nodes of both, with the values that are compared (FitParts), in target/ and golden/
/// below `dir`.
Status WriteFittedDumps(const MergedPair& pair, const std::string& dir);

}  // namespace msprobe
