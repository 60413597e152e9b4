#include "graph/build/whole_dumps.h"

#include "base/file.h"
#include "base/parallel.h"
#include "match/match_dumps.h"
#include "parallel/merge.h"

namespace msprobe {
namespace {

std::vector<uint32_t> OpsOf(const NodeGraph& graph, const DumpFile& dump) {
  std::vector<uint32_t> out(graph.nodes.size(), kNoOp);
  for (uint32_t id = 0; id < graph.nodes.size(); ++id) {
    if (const auto op = dump.FindOp(graph.nodes[id].name)) out[id] = static_cast<uint32_t>(*op);
  }
  return out;
}

}  // namespace

StatusOr<std::unique_ptr<WholeDumps>> WriteWholeDumps(const RankGraph& target, const RankGraph& golden,
                                                      const std::string& output) {
  MSP_ASSIGN_OR_RETURN(TempDirectory directory, TempDirectory::Create(output, "whole"));
  auto out = std::make_unique<WholeDumps>(std::move(directory));
  for (const RankGraph* rank : {&target, &golden}) {
    const std::string dir = JoinPath(out->directory.path(), rank == &target ? "target" : "golden");
    MSP_RETURN_IF_ERROR(WriteModelDump(*rank, /*matched_only=*/false, dir));
    MSP_ASSIGN_OR_RETURN(DumpFile dump, DumpFile::Open(JoinPath(dir, "dump.json")));
    (rank == &target ? out->target : out->golden) = std::make_unique<DumpFile>(std::move(dump));
  }
  out->target_op = OpsOf(target.graph, *out->target);
  out->golden_op = OpsOf(golden.graph, *out->golden);
  return out;
}

StatusOr<std::vector<std::string>> MatchWhole(const Mapping& mapping, const WholeDumps& whole, RankGraph* target,
                                              RankGraph* golden, GraphLinks* links) {
  MSP_ASSIGN_OR_RETURN(MatchPlan plan, MatchDumps(*whole.target, *whole.golden, mapping));
  std::vector<uint32_t> node_of(whole.golden->ops().size(), kNoIndex);
  for (uint32_t id = 0; id < whole.golden_op.size(); ++id) {
    if (whole.golden_op[id] != kNoOp) node_of[whole.golden_op[id]] = id;
  }
  for (uint32_t id = 0; id < whole.target_op.size(); ++id) {
    Node& node = target->graph.nodes[id];
    const uint32_t op = whole.target_op[id];
    uint32_t partner = kNoIndex;
    if (op == kNoOp) {
      partner = golden->graph.Find(node.name);
      if (partner != kNoIndex && whole.golden_op[partner] != kNoOp) partner = kNoIndex;
    } else if (plan.golden_of[op] != kNoOp) {
      partner = node_of[plan.golden_of[op]];
    }
    if (partner == kNoIndex) continue;
    node.match = partner;
    golden->graph.nodes[partner].match = id;
  }
  *links = std::move(plan.links);
  return std::move(plan.warnings);
}

}  // namespace msprobe
