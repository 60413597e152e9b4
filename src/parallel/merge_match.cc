#include "parallel/merge_match.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <deque>
#include <unordered_map>

#include "base/slot_table.h"
#include "base/text.h"
#include "dump/flatten.h"
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

/// The calls of a module that have no partner yet. Two numbers of ranks communicate about other things.
class CallLists {
 public:
  CallLists(std::string_view module, bool communication, const RankGraph& target, const RankGraph& golden)
      : sides_{&target, &golden} {
    // What one run does for its experts another may do before the tokens go to them.
    const bool experts = HasExperts(target) && HasExperts(golden);
    for (const size_t side : {size_t{0}, size_t{1}}) {
      const NodeGraph& graph = sides_[side]->graph;
      for (const uint32_t id : graph.nodes[graph.Find(module)].children) {
        const Node& node = graph.nodes[id];
        if (node.match != kNoIndex || (!communication && IsCommunication(node.name))) continue;
        calls_[side].push_back(id);
        names_[side].push_back(NameWithoutCounts(node.name));
        if (experts && sides_[side]->merged->sources[id].of_expert) names_[side].back() += " of experts";
        ++count_[side][names_[side].back()];
      }
    }
  }

  /// In a longest common sequence of names. Of functions that one side calls more often, as the gradients of a weight
  /// that two stages hold are added up twice, the dimensions tell which call has no partner.
  StatusOr<std::vector<IndexPair>> Align() {
    std::vector<IndexPair> plain = Pairs();
    bool any = false;
    for (const size_t side : {size_t{0}, size_t{1}}) {
      for (size_t i = 0; i < calls_[side].size(); ++i) {
        std::string& name = names_[side][i];
        if (CountOf(0, name) == CountOf(1, name)) continue;
        MSP_ASSIGN_OR_RETURN(const std::string dimensions, DimensionsOf(*sides_[side], calls_[side][i]));
        name += dimensions;
        any = true;
      }
    }
    if (!any) return plain;
    std::vector<IndexPair> fine = Pairs();
    return fine.size() < plain.size() ? plain : fine;
  }

 private:
  static bool HasExperts(const RankGraph& rank) {
    return std::ranges::any_of(rank.merged->sources, &MergeSource::of_expert);
  }

  size_t CountOf(size_t side, const std::string& name) const {
    const auto it = count_[side].find(name);
    return it == count_[side].end() ? 0 : it->second;
  }

  /// How many each tensor that the call is given has.
  static StatusOr<std::string> DimensionsOf(const RankGraph& rank, uint32_t id) {
    std::string out;
    const MergeSource& source = rank.merged->sources[id];
    if (source.cells.empty()) return out;
    JsonDoc doc;
    MSP_RETURN_IF_ERROR(rank.merged->ReadOp(rank, source.cells[0], &doc));
    if (!doc.IsObject()) return out;
    std::vector<Item> items;
    FlattenOp(rank.merged->NameOf(rank, source.cells[0]), doc, &items);
    for (const Item& item : items) {
      const JsonValue* shape = item.leaf && item.leaf->IsObject() ? item.leaf->Find("shape") : nullptr;
      if (shape && shape->IsArray() && item.state != ItemState::kOutput) out += fmt::format(" {}", shape->size());
    }
    return out;
  }

  std::vector<IndexPair> Pairs() const {
    TextIds names;
    BigArray<uint32_t> ids[2];
    for (const size_t side : {size_t{0}, size_t{1}}) {
      for (const std::string& name : names_[side]) ids[side].push_back(names.Enter(name));
    }
    std::vector<IndexPair> out;
    for (const IndexPair& p : AlignSequences(ids[0], ids[1])) out.push_back({calls_[0][p.first], calls_[1][p.second]});
    return out;
  }

  const RankGraph* sides_[2];
  std::vector<uint32_t> calls_[2];
  std::vector<std::string> names_[2];
  std::unordered_map<std::string, size_t> count_[2];
};

Status AlignCalls(std::string_view module, bool communication, RankGraph* target, RankGraph* golden) {
  CallLists lists(module, communication, *target, *golden);
  MSP_ASSIGN_OR_RETURN(const std::vector<IndexPair> pairs, lists.Align());
  for (const IndexPair& p : pairs) Pair(&target->graph, p.first, &golden->graph, p.second);
  return OkStatus();
}

/// Graphs that are one module of calls each (flat_structure.h). What one layout calls in addition shifts the order, so
/// calls of the forward pass match in a longest common sequence of their names, and those of the backward pass as the
/// calls whose gradients they are.
Status MatchCalls(bool communication, RankGraph* of_target, RankGraph* of_golden) {
  NodeGraph *target = &of_target->graph, *golden = &of_golden->graph;
  MatchFuzzy(target, golden);
  for (const std::string_view module : {kAllCallsForward, kAllCallsBackward}) {
    for (NodeGraph* graph : {target, golden}) {
      for (const uint32_t id : graph->nodes[graph->Find(module)].children) graph->nodes[id].match = kNoIndex;
    }
  }
  MSP_RETURN_IF_ERROR(AlignCalls(kAllCallsForward, communication, of_target, of_golden));
  for (const uint32_t id : target->nodes[target->Find(kAllCallsBackward)].children) {
    const uint32_t forward = target->Find(ReplaceAll(target->nodes[id].name, ".backward", ".forward"));
    if (forward == kNoIndex || target->nodes[forward].match == kNoIndex) continue;
    const std::string_view partner = golden->nodes[target->nodes[forward].match].name;
    const uint32_t other = golden->Find(ReplaceAll(partner, ".forward", ".backward"));
    if (other != kNoIndex) Pair(target, id, golden, other);
  }
  return AlignCalls(kAllCallsBackward, communication, of_target, of_golden);  // of calls that were recomputed
}

}  // namespace

Status MatchMerged(RankGraph* target, RankGraph* golden) {
  if (IsOneModuleOfCalls(target->files.construct) && IsOneModuleOfCalls(golden->files.construct)) {
    const bool communication = target->merged->ranks.size() == golden->merged->ranks.size();
    return MatchCalls(communication, target, golden);
  }
  MatchFuzzy(&target->graph, &golden->graph);
  return OkStatus();
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
