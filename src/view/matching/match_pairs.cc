#include "view/matching/match_pairs.h"

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
  explicit Pairing(const GraphSides& graph)
      : graph_(graph), target_taken_(graph.target.size(), false), golden_taken_(graph.golden.size(), false) {}

  void Add(NodePair pair, bool descendants) {
    Take(pair);
    AddTwin(pair);
    if (!descendants) return;
    for (size_t i = 0; i < pairs_.size(); ++i) AddChildren(pairs_[i]);  // grows while it runs
  }
  std::vector<NodePair> Done() { return std::move(pairs_); }

 private:
  bool Free(NodePair p) const {
    return graph_.target[p.target].partner == kNoNode && graph_.golden[p.golden].partner == kNoNode &&
           !target_taken_[p.target] && !golden_taken_[p.golden] &&
           graph_.target[p.target].type == graph_.golden[p.golden].type;
  }
  void Take(NodePair p) {
    target_taken_[p.target] = golden_taken_[p.golden] = true;
    pairs_.push_back(p);
  }
  void AddTwin(NodePair p) {
    const NodePair twin{graph_.target.Find(TwinName(graph_.target.Name(p.target))),
                        graph_.golden.Find(TwinName(graph_.golden.Name(p.golden)))};
    if (twin.target != kNoNode && twin.golden != kNoNode && Free(twin)) Take(twin);
  }
  void AddChildren(NodePair p) {
    std::unordered_map<std::string, std::vector<uint32_t>> free;  // children of the golden node
    const Tree &target = graph_.target, &golden = graph_.golden;
    for (uint32_t i = golden[p.golden].first_child; i != kNoNode; i = golden[i].next_sibling) {
      if (golden[i].partner == kNoNode && !golden_taken_[i]) free[PairingName(golden, i)].push_back(i);
    }
    std::unordered_map<std::string, size_t> used;
    for (uint32_t i = target[p.target].first_child; i != kNoNode; i = target[i].next_sibling) {
      if (target[i].partner != kNoNode || target_taken_[i]) continue;
      const std::string name = PairingName(target, i);
      const auto found = free.find(name);
      if (found == free.end()) continue;
      size_t& next = used[name];
      while (next < found->second.size() && golden_taken_[found->second[next]]) ++next;
      if (next >= found->second.size()) continue;
      const NodePair child{i, found->second[next++]};
      if (!Free(child)) continue;
      Take(child);
      AddTwin(child);
    }
  }

  const GraphSides& graph_;
  std::vector<bool> target_taken_, golden_taken_;
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

std::vector<NodePair> PairsToMatch(const GraphSides& graph, NodePair pair, bool descendants) {
  Pairing pairing(graph);
  pairing.Add(pair, descendants);
  return pairing.Done();
}

std::vector<uint32_t> NodesToCancel(const GraphSides& graph, uint32_t node, bool descendants) {
  const Tree& target = graph.target;
  std::vector<uint32_t> nodes{node};
  const uint32_t twin = target.Find(TwinName(target.Name(node)));
  if (twin != kNoNode && target[twin].partner != kNoNode &&
      graph.golden.Name(target[twin].partner) == TwinName(graph.golden.Name(target[node].partner))) {
    nodes.push_back(twin);
  }
  if (!descendants) return nodes;
  std::vector<bool> known(target.size(), false);
  for (const uint32_t i : nodes) known[i] = true;
  // A subtree is walked through nodes without partners too: what is below them was matched with it.
  std::vector<uint32_t> open = nodes;
  while (!open.empty()) {
    const uint32_t up = open.back();
    open.pop_back();
    for (uint32_t i = target[up].first_child; i != kNoNode; i = target[i].next_sibling) {
      if (known[i]) continue;
      known[i] = true;
      open.push_back(i);
      if (target[i].partner != kNoNode) nodes.push_back(i);
    }
  }
  return nodes;
}

}  // namespace msprobe::view
