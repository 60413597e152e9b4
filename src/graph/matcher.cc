#include "graph/matcher.h"

#include <algorithm>
#include <charconv>
#include <limits>

#include "base/text.h"

namespace msprobe {
namespace {

void Pair(NodeGraph* npu, uint32_t n, NodeGraph* bench, uint32_t b) {
  npu->nodes[n].match = b;
  bench->nodes[b].match = n;
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

void HandDown(NodeGraph* graph) {
  ForEachBreadthFirst(*graph, [&](uint32_t id) {
    Node& node = graph->nodes[id];
    if (node.micro_step < 0 && node.parent != kNoIndex) node.micro_step = graph->nodes[node.parent].micro_step;
  });
}

}  // namespace

void MatchByName(NodeGraph* npu, NodeGraph* bench) {
  Pair(npu, 0, bench, 0);
  ForEachBreadthFirst(*npu, [&](uint32_t n) {
    if (n == 0) return;
    const uint32_t up = npu->nodes[n].parent;
    if (npu->nodes[up].match == kNoIndex) return;  // then some ancestor differs
    const uint32_t b = bench->Find(npu->nodes[n].name);
    if (b != kNoIndex && b != 0 && bench->nodes[b].parent == npu->nodes[up].match) Pair(npu, n, bench, b);
  });
}

void MatchFuzzy(NodeGraph* npu, NodeGraph* bench, std::string_view npu_top, std::string_view bench_top) {
  const auto find = [&](std::string_view name) {
    if (npu_top == bench_top || !StartsWith(name, npu_top)) return bench->Find(name);
    return bench->Find(std::string(bench_top) + std::string(name.substr(npu_top.size())));
  };
  ForEachBreadthFirst(*npu, [&](uint32_t n) {
    if (npu->nodes[n].type == NodeType::kApi) return;
    const uint32_t b = find(npu->nodes[n].name);
    if (b == kNoIndex) return;
    Pair(npu, n, bench, b);
    std::unordered_map<std::string, uint32_t> others;
    for (auto& [key, id] : Calls(*bench, b)) others.emplace(std::move(key), id);
    for (const auto& [key, id] : Calls(*npu, n)) {
      if (const auto it = others.find(key); it != others.end()) Pair(npu, id, bench, it->second);
    }
  });
}

void MatchByPlan(const MatchPlan& plan, NodeGraph* npu, NodeGraph* bench) {
  std::unordered_map<uint32_t, uint32_t> node_of;  // golden op -> node
  for (uint32_t b : bench->order) {
    if (bench->nodes[b].op != kNoIndex) node_of.emplace(bench->nodes[b].op, b);
  }
  ForEachBreadthFirst(*npu, [&](uint32_t n) {
    const uint32_t op = npu->nodes[n].op;
    if (op == kNoIndex || op >= plan.golden_of.size()) {
      const uint32_t b = bench->Find(npu->nodes[n].name);
      if (b != kNoIndex && bench->nodes[b].op == kNoIndex) Pair(npu, n, bench, b);
    } else if (const auto it = node_of.find(plan.golden_of[op]); it != node_of.end()) {
      Pair(npu, n, bench, it->second);
    }
  });
}

void MatchCallsInside(NodeGraph* npu, NodeGraph* bench) {
  const auto alone = [](const NodeGraph& graph, uint32_t node) {
    auto calls = Calls(graph, node);
    std::erase_if(calls, [&](const auto& call) { return graph.nodes[call.second].match != kNoIndex; });
    return calls;
  };
  ForEachBreadthFirst(*npu, [&](uint32_t n) {
    const uint32_t b = npu->nodes[n].match;
    if (b == kNoIndex || npu->nodes[n].type == NodeType::kApi) return;
    std::unordered_map<std::string, uint32_t> others;
    for (auto& [key, id] : alone(*bench, b)) others.emplace(std::move(key), id);
    for (const auto& [key, id] : alone(*npu, n)) {
      if (const auto it = others.find(key); it != others.end()) Pair(npu, id, bench, it->second);
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

int NumberMicroSteps(std::optional<int> recorded, NodeGraph* npu, NodeGraph* bench) {
  if (recorded) return std::clamp(*recorded, 0, std::numeric_limits<int>::max() - 1) + 1;
  int step = 0;
  bool backward_seen = false;
  for (uint32_t id : npu->nodes[0].children) {
    Node& node = npu->nodes[id];
    if (node.type == NodeType::kModule) {
      if (node.recomputed) {
        // Part of the backward pass that it runs in.
      } else if (!Contains(node.name, ".forward.")) {
        backward_seen = true;
      } else if (backward_seen) {
        ++step;
        backward_seen = false;
      }
    }
    node.micro_step = step;
    if (bench && node.match != kNoIndex) bench->nodes[node.match].micro_step = step;
  }
  HandDown(npu);
  if (bench) {
    for (uint32_t id : bench->nodes[0].children) {
      Node& node = bench->nodes[id];
      if (node.micro_step < 0) node.micro_step = LastNumber(node.name);
    }
    HandDown(bench);
  }
  return step + 1;
}

}  // namespace msprobe
