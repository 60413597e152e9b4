#include "graph/graph_match.h"

#include "graph/matcher.h"
#include "graph/merge_match.h"
#include "match/match_dumps.h"

namespace msprobe {

StatusOr<std::vector<std::string>> MatchGraphs(const GraphMatching& how, RankGraph* npu, RankGraph* bench) {
  std::vector<std::string> warnings;
  const Mapping& mapping = *how.mapping;
  if (how.merged) {
    if (mapping.layer) {
      std::string text = MatchMergedLayers(mapping, npu, bench);
      if (!text.empty()) warnings.push_back(std::move(text));
    } else {
      MatchMerged(npu, bench);
    }
    return warnings;
  }
  if (!mapping.layer) {
    if (how.fuzzy) {
      MatchFuzzy(&npu->graph, &bench->graph);
    } else {
      MatchByName(&npu->graph, &bench->graph);
    }
    return warnings;
  }
  MSP_ASSIGN_OR_RETURN(MatchPlan plan, MatchDumps(npu->files.dump, bench->files.dump, mapping));
  warnings = std::move(plan.warnings);
  MatchByPlan(plan, &npu->graph, &bench->graph);
  if (how.fuzzy) MatchCallsInside(&npu->graph, &bench->graph);
  return warnings;
}

}  // namespace msprobe
