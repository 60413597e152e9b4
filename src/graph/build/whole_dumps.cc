#include "graph/build/whole_dumps.h"

#include <unordered_map>

#include "base/file.h"
#include "base/message.h"
#include "graph/tree/matcher.h"
#include "match/match_dumps.h"
#include "parallel/merge.h"
#include "parallel/merge_pool.h"

namespace msprobe {
namespace {

std::vector<uint32_t> OpsOf(const NodeGraph& graph, const DumpFile& dump) {
  std::vector<uint32_t> out(graph.nodes.size(), kNoOp);
  for (uint32_t id = 0; id < graph.nodes.size(); ++id) {
    if (const auto op = dump.FindOp(graph.nodes[id].name)) out[id] = static_cast<uint32_t>(*op);
  }
  return out;
}

/// Where a call outside of the model is: calls between modules, and what an optimizer does, belong to their rank.
std::string_view PlaceOutside(const NodeGraph& graph, uint32_t id) {
  const uint32_t parent = graph.nodes[id].parent;
  if (graph.nodes[id].type != NodeType::kApi || parent == kNoIndex) return {};
  const Node& up = graph.nodes[parent];
  return parent == 0 || up.type == NodeType::kCollection || IsUnmerged(up.name) ? std::string_view(up.name)
                                                                                : std::string_view();
}

uint32_t MatchedModuleAround(const NodeGraph& graph, uint32_t id) {
  for (uint32_t at = graph.nodes[id].parent; at != kNoIndex; at = graph.nodes[at].parent) {
    if (graph.nodes[at].match != kNoIndex) return at;
  }
  return kNoIndex;
}

/// Calls in modules that do not belong together: their numbers are those of single ranks, and agree by chance.
void LeaveStrayCalls(NodeGraph* target, NodeGraph* golden) {
  for (uint32_t id = 0; id < target->nodes.size(); ++id) {
    Node& node = target->nodes[id];
    if (node.type != NodeType::kApi || node.match == kNoIndex) continue;
    const uint32_t mine = MatchedModuleAround(*target, id), theirs = MatchedModuleAround(*golden, node.match);
    if (mine == kNoIndex || theirs == kNoIndex) continue;
    if (target->nodes[mine].match == theirs || golden->nodes[theirs].match == mine) continue;
    if (golden->nodes[node.match].match == id) golden->nodes[node.match].match = kNoIndex;
    node.match = kNoIndex;
  }
}

/// What the optimizers of two runs do, by order: its tensors are parts of those of the other layout.
void PairUnmerged(NodeGraph* target, NodeGraph* golden) {
  for (const uint32_t up : target->nodes[0].children) {
    if (!IsUnmerged(target->nodes[up].name) || target->nodes[up].match == kNoIndex) continue;
    std::unordered_map<std::string, std::vector<uint32_t>> calls;
    for (const uint32_t id : golden->nodes[target->nodes[up].match].children) {
      calls[NameWithoutCounts(golden->nodes[id].name)].push_back(id);
    }
    std::unordered_map<std::string, size_t> next;
    for (const uint32_t id : target->nodes[up].children) {
      const std::string key = NameWithoutCounts(target->nodes[id].name);
      const std::vector<uint32_t>& others = calls[key];
      const size_t at = next[key]++;
      if (at >= others.size()) continue;
      target->nodes[id].match = others[at];
      golden->nodes[others[at]].match = id;
    }
  }
}

}  // namespace

StatusOr<std::unique_ptr<WholeDumps>> WriteWholeDumps(const RankGraph& target, const RankGraph& golden,
                                                      const std::string& output) {
  MSP_ASSIGN_OR_RETURN(TempDirectory directory, TempDirectory::Create(output, "whole"));
  auto out = std::make_unique<WholeDumps>(std::move(directory));
  for (const RankGraph* rank : {&target, &golden}) {
    const std::string dir = JoinPath(out->directory.path(), rank == &target ? "target" : "golden");
    MSP_RETURN_IF_ERROR(WriteModelDump(*rank, ModelDump::kWhole, dir));
    MSP_ASSIGN_OR_RETURN(DumpFile dump, DumpFile::Open(JoinPath(dir, "dump.json")));
    (rank == &target ? out->target : out->golden) = std::make_unique<DumpFile>(std::move(dump));
  }
  out->target_op = OpsOf(target.graph, *out->target);
  out->golden_op = OpsOf(golden.graph, *out->golden);
  return out;
}

StatusOr<std::vector<Message>> MatchWhole(const Mapping& mapping, const WholeDumps& whole, RankGraph* target,
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
    const std::string_view place = PlaceOutside(target->graph, id);
    if (place != PlaceOutside(golden->graph, partner) || IsUnmerged(place)) continue;
    node.match = partner;
    golden->graph.nodes[partner].match = id;
  }
  // Layers that the target computes as one: the first of them is its partner, the others show it, too.
  for (const auto& [op, link] : plan.links) {
    if (link.joins_targets || link.joined.empty()) continue;
    const uint32_t first = golden->graph.nodes[node_of[link.joined[0]]].match;
    if (first == kNoIndex) continue;
    for (const uint32_t joined : link.joined) {
      uint32_t& match = golden->graph.nodes[node_of[joined]].match;
      if (match == kNoIndex) match = first;
    }
  }
  LeaveStrayCalls(&target->graph, &golden->graph);
  PairUnmerged(&target->graph, &golden->graph);
  *links = std::move(plan.links);
  return std::move(plan.warnings);
}

}  // namespace msprobe
