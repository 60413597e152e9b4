#include "parallel/merge_match.h"

#include <fmt/format.h>

#include <charconv>
#include <deque>

#include "base/slot_table.h"
#include "base/text.h"
#include "graph/tree/flat_structure.h"
#include "graph/tree/matcher.h"
#include "match/layer_match.h"
#include "match/match_plan.h"
#include "ops/collective.h"
#include "parallel/merge_data.h"

namespace msprobe {
namespace {

/// A call of one rank as a call without a rank, and with a number that no other has: "Torch.x_rank3.0.forward" ->
/// "Torch.x.4000000000.forward". Calls between modules belong to their rank and stay as they are.
std::string WithoutRank(std::string_view name) {
  const std::vector<std::string_view> parts = Segments(name);
  constexpr std::string_view kRank = "_rank";
  if (parts.size() != 4 || !IsDigits(parts[2])) return std::string(name);
  const size_t at = parts[1].rfind(kRank);
  if (at == std::string_view::npos || !IsDigits(parts[1].substr(at + kRank.size()))) return std::string(name);
  int rank = 0;
  const std::string_view digits = parts[1].substr(at + kRank.size());
  std::from_chars(digits.data(), digits.data() + digits.size(), rank);
  return fmt::format("{}.{}.{}{:0>9}.{}", parts[0], parts[1].substr(0, at), int64_t{rank} + 1, parts[2], parts[3]);
}

/// The nodes of a graph that have data, as ops of a dump.
struct GraphOps {
  LayerSide side;
  std::vector<uint32_t> nodes;
  std::deque<std::string> names;

  explicit GraphOps(const NodeGraph& graph) {
    for (uint32_t id : graph.order) {
      const Node& node = graph.nodes[id];
      if (node.op == kNoIndex) continue;
      const Node& up = graph.nodes[node.parent];
      const bool in_module = node.parent != 0 && up.type == NodeType::kModule;
      const bool call = node.type == NodeType::kApi && in_module;
      names.push_back(call ? WithoutRank(node.name) : std::string(node.name));
      side.ops.push_back(names.back());
      side.modules.push_back(in_module ? up.name : std::string_view());
      nodes.push_back(id);
    }
  }
};

void Pair(NodeGraph* target, uint32_t n, NodeGraph* golden, uint32_t b) {
  target->nodes[n].match = b;
  golden->nodes[b].match = n;
}

/// The calls of a module that have no partner yet, in a longest common sequence of their names. Two numbers of ranks
/// communicate about other things.
void AlignCalls(std::string_view module, bool communication, NodeGraph* target, NodeGraph* golden) {
  TextIds names;
  std::deque<std::string> texts;
  std::vector<uint32_t> calls[2];
  BigArray<uint32_t> ids[2];
  for (const size_t side : {size_t{0}, size_t{1}}) {
    const NodeGraph& graph = side == 0 ? *target : *golden;
    for (const uint32_t id : graph.nodes[graph.Find(module)].children) {
      if (graph.nodes[id].match != kNoIndex || (!communication && IsCommunication(graph.nodes[id].name))) continue;
      calls[side].push_back(id);
      ids[side].push_back(names.Enter(texts.emplace_back(NameWithoutCounts(graph.nodes[id].name))));
    }
  }
  for (const IndexPair& p : AlignSequences(ids[0], ids[1])) Pair(target, calls[0][p.first], golden, calls[1][p.second]);
}

/// Graphs that are one module of calls each (flat_structure.h). What one layout calls in addition shifts the order, so
/// calls of the forward pass match in a longest common sequence of their names, and those of the backward pass as the
/// calls whose gradients they are.
void MatchCalls(bool communication, NodeGraph* target, NodeGraph* golden) {
  MatchFuzzy(target, golden);
  for (const std::string_view module : {kAllCallsForward, kAllCallsBackward}) {
    for (NodeGraph* graph : {target, golden}) {
      for (const uint32_t id : graph->nodes[graph->Find(module)].children) graph->nodes[id].match = kNoIndex;
    }
  }
  AlignCalls(kAllCallsForward, communication, target, golden);
  for (const uint32_t id : target->nodes[target->Find(kAllCallsBackward)].children) {
    const uint32_t forward = target->Find(ReplaceAll(target->nodes[id].name, ".backward", ".forward"));
    if (forward == kNoIndex || target->nodes[forward].match == kNoIndex) continue;
    const std::string_view partner = golden->nodes[target->nodes[forward].match].name;
    const uint32_t other = golden->Find(ReplaceAll(partner, ".forward", ".backward"));
    if (other != kNoIndex) Pair(target, id, golden, other);
  }
  AlignCalls(kAllCallsBackward, communication, target, golden);  // of calls that were recomputed
}

}  // namespace

void MatchMerged(RankGraph* target, RankGraph* golden) {
  if (IsOneModuleOfCalls(target->files.construct) && IsOneModuleOfCalls(golden->files.construct)) {
    const bool communication = target->merged->ranks.size() == golden->merged->ranks.size();
    MatchCalls(communication, &target->graph, &golden->graph);
  } else {
    MatchFuzzy(&target->graph, &golden->graph);
  }
}

Message MatchMergedLayers(const Mapping& mapping, RankGraph* target, RankGraph* golden) {
  const GraphOps target_ops(target->graph), golden_ops(golden->graph);
  const MatchPlan plan = MatchLayers(target_ops.side, golden_ops.side, mapping.layers);
  const auto pair = [&](uint32_t n, uint32_t b) {
    target->graph.nodes[n].match = b;
    golden->graph.nodes[b].match = n;
  };
  for (size_t i = 0; i < target_ops.nodes.size(); ++i) {
    if (plan.golden_of[i] != kNoOp) pair(target_ops.nodes[i], golden_ops.nodes[plan.golden_of[i]]);
  }
  for (uint32_t n : target->graph.order) {  // the root, collections, modules without data
    if (target->graph.nodes[n].op != kNoIndex) continue;
    const uint32_t b = golden->graph.Find(target->graph.nodes[n].name);
    if (b != kNoIndex && golden->graph.nodes[b].op == kNoIndex) pair(n, b);
  }
  MatchCallsInside(&target->graph, &golden->graph);
  return UnusedRulesWarning(plan, mapping);
}

}  // namespace msprobe
