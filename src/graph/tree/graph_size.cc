#include "graph/tree/graph_size.h"

#include "base/file.h"
#include "base/message.h"
#include "dump/output_bound.h"

namespace msprobe {

StatusOr<GraphPlan> PlanGraph(const GraphSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const RankChoice ranks, RankChoice::Read(settings.ranks));
  return PlanGraph(settings.target, settings.golden, ranks);
}

StatusOr<GraphPlan> PlanBoundedGraph(const GraphSettings& settings) {
  MSP_ASSIGN_OR_RETURN(GraphPlan plan, PlanGraph(settings));
  // Bytes of the file for each byte of a dump: nodes take less room than their JSON.
  constexpr double kRatio = 0.8, kPlainRatio = 2.4;
  uint64_t dumps = 0;
  for (const GraphPair& pair : plan.pairs) {
    for (const std::string& directory : {pair.target_dir, pair.golden_dir})
      if (!directory.empty()) dumps += FileBytes(JoinPath(directory, "dump.json"));
  }
  const double bytes = static_cast<double>(dumps) * (settings.plain ? kPlainRatio : kRatio);
  MSP_RETURN_IF_ERROR(CheckOutput(static_cast<uint64_t>(bytes), 1, settings.out_limit,
                                  Msg("choose ranks with --ranks, or give a larger --out-limit")));
  if (settings.before && plan.pairs.size() >= kManyRanks) {
    settings.before(Msg("writing {} graphs, about {} together\n", plan.pairs.size(), BytesText(bytes)));
  }
  return plan;
}

}  // namespace msprobe
