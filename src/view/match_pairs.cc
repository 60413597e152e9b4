#include "view/match_pairs.h"

#include <unordered_map>
#include <utility>

#include "base/text.h"

namespace msprobe::view {
namespace {

// What children are recognised by: "fc1" of "Module.blocks.0.fc1.Linear.forward.0", "blocks" of
// "Module.blocks.0.Block.forward.0", "linear" of "Functional.linear.2.forward"; with the type behind it.
std::string PairingName(const Tree& tree, uint32_t node) {
  const bool module = tree[node].type == 0;
  const std::vector<std::string_view> parts = Split(tree.Name(node), '.');
  const size_t behind = module ? 4 : 2;  // class, direction, number; or direction
  std::string out = std::to_string(tree[node].type) + ' ';
  if (parts.size() >= behind && !IsDigits(parts[parts.size() - behind]))
    return out.append(parts[parts.size() - behind]);
  if (parts.size() > behind) return out.append(parts[parts.size() - behind - 1]);
  return out;
}

class Pairing {
 public:
  explicit Pairing(const RankGraph& graph)
      : graph_(graph), npu_taken_(graph.npu.size(), false), bench_taken_(graph.bench.size(), false) {}

  void Add(NodePair pair, bool descendants) {
    Take(pair);
    AddTwin(pair);
    if (!descendants) return;
    for (size_t i = 0; i < pairs_.size(); ++i) AddChildren(pairs_[i]);  // grows while it runs
  }
  std::vector<NodePair> Done() { return std::move(pairs_); }

 private:
  bool Free(NodePair p) const {
    return graph_.npu[p.npu].partner == kNoNode && graph_.bench[p.bench].partner == kNoNode && !npu_taken_[p.npu] &&
           !bench_taken_[p.bench] && graph_.npu[p.npu].type == graph_.bench[p.bench].type;
  }
  void Take(NodePair p) {
    npu_taken_[p.npu] = bench_taken_[p.bench] = true;
    pairs_.push_back(p);
  }
  void AddTwin(NodePair p) {
    const NodePair twin{graph_.npu.Find(TwinName(graph_.npu.Name(p.npu))),
                        graph_.bench.Find(TwinName(graph_.bench.Name(p.bench)))};
    if (twin.npu != kNoNode && twin.bench != kNoNode && Free(twin)) Take(twin);
  }
  void AddChildren(NodePair p) {
    std::unordered_map<std::string, std::vector<uint32_t>> golden;
    const Tree &npu = graph_.npu, &bench = graph_.bench;
    for (uint32_t i = bench[p.bench].first_child; i != kNoNode; i = bench[i].next_sibling) {
      if (bench[i].partner == kNoNode && !bench_taken_[i]) golden[PairingName(bench, i)].push_back(i);
    }
    std::unordered_map<std::string, size_t> used;
    for (uint32_t i = npu[p.npu].first_child; i != kNoNode; i = npu[i].next_sibling) {
      if (npu[i].partner != kNoNode || npu_taken_[i]) continue;
      const std::string name = PairingName(npu, i);
      const auto found = golden.find(name);
      if (found == golden.end()) continue;
      size_t& next = used[name];
      while (next < found->second.size() && bench_taken_[found->second[next]]) ++next;
      if (next >= found->second.size()) continue;
      const NodePair child{i, found->second[next++]};
      if (!Free(child)) continue;
      Take(child);
      AddTwin(child);
    }
  }

  const RankGraph& graph_;
  std::vector<bool> npu_taken_, bench_taken_;
  std::vector<NodePair> pairs_;
};

}  // namespace

std::string TwinName(std::string_view name) {
  for (const auto& [from, to] : {std::pair<std::string_view, std::string_view>{".forward", ".backward"},
                                 std::pair<std::string_view, std::string_view>{".backward", ".forward"}}) {
    const size_t at = name.rfind(from);
    const size_t end = at + from.size();
    if (at == std::string_view::npos || (end < name.size() && name[end] != '.')) continue;
    return std::string(name.substr(0, at)).append(to).append(name.substr(end));
  }
  return "";
}

std::vector<NodePair> PairsToMatch(const RankGraph& graph, NodePair pair, bool descendants) {
  Pairing pairing(graph);
  pairing.Add(pair, descendants);
  return pairing.Done();
}

std::vector<uint32_t> NodesToCancel(const RankGraph& graph, uint32_t node, bool descendants) {
  const Tree& npu = graph.npu;
  std::vector<uint32_t> nodes{node};
  const uint32_t twin = npu.Find(TwinName(npu.Name(node)));
  if (twin != kNoNode && npu[twin].partner != kNoNode &&
      graph.bench.Name(npu[twin].partner) == TwinName(graph.bench.Name(npu[node].partner))) {
    nodes.push_back(twin);
  }
  if (!descendants) return nodes;
  std::vector<bool> known(npu.size(), false);
  for (const uint32_t i : nodes) known[i] = true;
  // A subtree is walked through nodes without partners too: what is below them was matched with it.
  std::vector<uint32_t> open = nodes;
  while (!open.empty()) {
    const uint32_t up = open.back();
    open.pop_back();
    for (uint32_t i = npu[up].first_child; i != kNoNode; i = npu[i].next_sibling) {
      if (known[i]) continue;
      known[i] = true;
      open.push_back(i);
      if (npu[i].partner != kNoNode) nodes.push_back(i);
    }
  }
  return nodes;
}

}  // namespace msprobe::view
