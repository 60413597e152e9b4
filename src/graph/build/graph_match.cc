#include "graph/build/graph_match.h"

#include "graph/build/whole_dumps.h"
#include "graph/tree/matcher.h"
#include "match/match_dumps.h"
#include "parallel/merge_match.h"

namespace msprobe {

StatusOr<std::vector<Message>> MatchGraphs(const GraphMatching& how, RankGraph* target, RankGraph* golden,
                                           GraphLinks* links, std::shared_ptr<const WholeDumps>* whole) {
  std::vector<Message> warnings;
  const Mapping& mapping = *how.mapping;
  if (how.merged && how.kin.cross) {
    MSP_ASSIGN_OR_RETURN(*whole, WriteWholeDumps(*target, *golden, how.output));
    MSP_ASSIGN_OR_RETURN(warnings, MatchWhole(mapping, **whole, target, golden, links));
    if (how.fuzzy) MatchCallsInside(&target->graph, &golden->graph);
    return warnings;
  }
  if (how.merged) {
    if (mapping.layer) {
      Message text = MatchMergedLayers(mapping, target, golden);
      if (!text.empty()) warnings.push_back(std::move(text));
    } else {
      MSP_RETURN_IF_ERROR(MatchMerged(target, golden));
    }
    return warnings;
  }
  if (!mapping.layer && !how.kin.cross) {
    if (how.fuzzy) {
      MatchFuzzy(&target->graph, &golden->graph);
    } else {
      MatchByName(&target->graph, &golden->graph);
    }
    return warnings;
  }
  MSP_ASSIGN_OR_RETURN(MatchPlan plan, MatchDumps(target->files.dump, golden->files.dump, mapping));
  warnings = std::move(plan.warnings);
  MatchByPlan(plan, &target->graph, &golden->graph);
  if (how.kin.cross) *links = std::move(plan.links);
  if (how.fuzzy) MatchCallsInside(&target->graph, &golden->graph);
  return warnings;
}

}  // namespace msprobe
