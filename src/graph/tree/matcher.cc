#include "graph/tree/matcher.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.h"
#include "ops/micro_steps.h"
#include "ops/module_prefix.h"

namespace msprobe {
namespace {

void Pair(NodeGraph* target, uint32_t n, NodeGraph* golden, uint32_t b) {
  target->nodes[n].match = b;
  golden->nodes[b].match = n;
}

template <typename F>
void ForEachBreadthFirst(const NodeGraph& graph, F&& visit) {
  std::vector<uint32_t> queue{0};
  queue.reserve(graph.order.size());
  for (size_t i = 0; i < queue.size(); ++i) {
    const uint32_t id = queue[i];
    visit(id);
    const auto& children = graph.nodes[id].children;
    queue.insert(queue.end(), children.begin(), children.end());
  }
}

// Key of each call inside `node`: its name without counts and its how-many-th it is.
std::vector<std::pair<std::string, uint32_t>> Calls(const NodeGraph& graph, uint32_t node) {
  std::vector<std::pair<std::string, uint32_t>> out;
  std::unordered_map<std::string, int> count;
  for (uint32_t child : graph.nodes[node].children) {
    if (graph.nodes[child].type != NodeType::kApi) continue;
    std::string key = NameWithoutCounts(graph.nodes[child].name);
    const int k = ++count[key];
    key += '#';
    key += std::to_string(k);
    out.emplace_back(std::move(key), child);
  }
  return out;
}

int LastNumber(std::string_view name) {
  const std::string_view last = name.substr(name.rfind('.') + 1);
  int value = 0;
  if (IsDigits(last)) std::from_chars(last.data(), last.data() + last.size(), value);
  return value;
}

std::string_view PrefixOf(const NodeGraph& graph) {
  const auto& top = graph.nodes[0].children;
  return ModulePrefix(top.size(), [&](size_t i) -> std::string_view { return graph.nodes[top[i]].name; });
}

/// The node that has this name on the golden side.
class Renamed {
 public:
  Renamed(const NodeGraph& target, const NodeGraph& golden)
      : golden_(golden), from_(PrefixOf(target)), to_(PrefixOf(golden)) {}
  uint32_t Find(std::string_view name) const {
    if (from_ == to_ || from_.empty() || to_.empty()) return golden_.Find(name);
    return golden_.Find(WithPrefix(name, from_, to_));
  }

 private:
  const NodeGraph& golden_;
  const std::string_view from_, to_;
};

void HandDown(NodeGraph* graph) {
  ForEachBreadthFirst(*graph, [&](uint32_t id) {
    Node& node = graph->nodes[id];
    if (node.micro_step < 0 && node.parent != kNoIndex) node.micro_step = graph->nodes[node.parent].micro_step;
  });
}

}  // namespace

void MatchByName(NodeGraph* target, NodeGraph* golden) {
  const Renamed names(*target, *golden);
  Pair(target, 0, golden, 0);
  ForEachBreadthFirst(*target, [&](uint32_t n) {
    if (n == 0) return;
    const uint32_t up = target->nodes[n].parent;
    if (target->nodes[up].match == kNoIndex) return;  // then some ancestor differs
    const uint32_t b = names.Find(target->nodes[n].name);
    if (b != kNoIndex && b != 0 && golden->nodes[b].parent == target->nodes[up].match) Pair(target, n, golden, b);
  });
}

void MatchFuzzy(NodeGraph* target, NodeGraph* golden) {
  const Renamed names(*target, *golden);
  ForEachBreadthFirst(*target, [&](uint32_t n) {
    if (target->nodes[n].type == NodeType::kApi) return;
    const uint32_t b = names.Find(target->nodes[n].name);
    if (b == kNoIndex) return;
    Pair(target, n, golden, b);
    std::unordered_map<std::string, uint32_t> others;
    for (auto& [key, id] : Calls(*golden, b)) others.emplace(std::move(key), id);
    for (const auto& [key, id] : Calls(*target, n)) {
      if (const auto it = others.find(key); it != others.end()) Pair(target, id, golden, it->second);
    }
  });
}

void MatchByPlan(const MatchPlan& plan, NodeGraph* target, NodeGraph* golden) {
  std::unordered_map<uint32_t, uint32_t> node_of;  // golden op -> node
  for (uint32_t b : golden->order) {
    if (golden->nodes[b].op != kNoIndex) node_of.emplace(golden->nodes[b].op, b);
  }
  ForEachBreadthFirst(*target, [&](uint32_t n) {
    const uint32_t op = target->nodes[n].op;
    if (op == kNoIndex || op >= plan.golden_of.size()) {
      // A function of two implementations has its number by chance.
      if (plan.implementations && target->nodes[n].type == NodeType::kApi) return;
      const uint32_t b = golden->Find(target->nodes[n].name);
      if (b != kNoIndex && golden->nodes[b].op == kNoIndex) Pair(target, n, golden, b);
    } else if (const auto it = node_of.find(plan.golden_of[op]); it != node_of.end()) {
      Pair(target, n, golden, it->second);
    }
  });
  // Layers that the target computes as one: the first of them is its partner, the others show it, too.
  for (const auto& [op, links] : plan.links) {
    if (links.joins_targets || links.joined.empty()) continue;
    const auto first = node_of.find(links.joined[0]);
    if (first == node_of.end() || golden->nodes[first->second].match == kNoIndex) continue;
    for (const uint32_t joined : links.joined) {
      const auto it = node_of.find(joined);
      if (it == node_of.end()) continue;
      uint32_t& match = golden->nodes[it->second].match;
      if (match == kNoIndex) match = golden->nodes[first->second].match;
    }
  }
}

void MatchCallsInside(NodeGraph* target, NodeGraph* golden) {
  const auto alone = [](const NodeGraph& graph, uint32_t node) {
    auto calls = Calls(graph, node);
    std::erase_if(calls, [&](const auto& call) { return graph.nodes[call.second].match != kNoIndex; });
    return calls;
  };
  ForEachBreadthFirst(*target, [&](uint32_t n) {
    const uint32_t b = target->nodes[n].match;
    if (b == kNoIndex || target->nodes[n].type == NodeType::kApi) return;
    std::unordered_map<std::string, uint32_t> others;
    for (auto& [key, id] : alone(*golden, b)) others.emplace(std::move(key), id);
    for (const auto& [key, id] : alone(*target, n)) {
      if (const auto it = others.find(key); it != others.end()) Pair(target, id, golden, it->second);
    }
  });
}

std::string NameWithoutCounts(std::string_view name) {
  std::string out;
  for (size_t i = 0; i < name.size();) {
    if (name[i] == '.') {
      size_t end = i + 1;
      while (end < name.size() && name[end] >= '0' && name[end] <= '9') ++end;
      if (end > i + 1 && end < name.size() && name[end] == '.') {
        out += '.';
        i = end + 1;
        continue;
      }
    }
    out += name[i++];
  }
  static constexpr std::string_view kRank = "_rank";
  for (size_t at = out.find(kRank); at != std::string::npos; at = out.find(kRank, at)) {
    size_t end = at + kRank.size();
    while (end < out.size() && out[end] >= '0' && out[end] <= '9') ++end;
    if (end == at + kRank.size()) {
      ++at;
    } else {
      out.erase(at, end - at);
    }
  }
  return out;
}

int NumberMicroSteps(std::optional<int> recorded, NodeGraph* target, NodeGraph* golden) {
  if (recorded) return std::clamp(*recorded, 0, std::numeric_limits<int>::max() - 1) + 1;
  MicroStepCounter steps(false);
  for (uint32_t id : target->nodes[0].children) {
    Node& node = target->nodes[id];
    if (node.type == NodeType::kModule) {
      if (node.recomputed) {
        // Part of the backward pass that it runs in.
      } else if (!Contains(node.name, ".forward.")) {
        steps.Backward();
      } else {
        steps.Forward({});
      }
    }
    node.micro_step = steps.current();
    if (golden && node.match != kNoIndex) golden->nodes[node.match].micro_step = node.micro_step;
  }
  HandDown(target);
  if (golden) {
    for (uint32_t id : golden->nodes[0].children) {
      Node& node = golden->nodes[id];
      if (node.micro_step < 0) node.micro_step = LastNumber(node.name);
    }
    HandDown(golden);
  }
  return steps.current() + 1;
}

}  // namespace msprobe
