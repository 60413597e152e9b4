// Gradients of parameters are recorded for a module, not for a call of it; here they go to the backward call that they
// belong to.
#include <algorithm>

#include "base/text.h"
#include "graph/tree/builder.h"

namespace msprobe {
namespace {

// "x.parameters_grad" or "x.parameters_grad.3"; the length of "x", or npos.
size_t GradPrefix(std::string_view name) {
  static constexpr std::string_view kGrad = ".parameters_grad";
  std::string_view head = name;
  const size_t dot = name.rfind('.');
  if (dot != std::string_view::npos && IsDigits(name.substr(dot + 1))) head = name.substr(0, dot);
  if (EndsWith(head, kGrad)) return head.size() - kGrad.size();
  return std::string_view::npos;
}

struct Module {
  std::vector<uint32_t> grads;  // ops, as they were recorded
  std::vector<uint32_t> calls;  // backward nodes
};

/// As their numbers say, when nothing is known about time.
bool LowerNumber(std::string_view a, std::string_view b) {
  const std::string_view x = a.substr(a.rfind('.') + 1), y = b.substr(b.rfind('.') + 1);
  return x.size() != y.size() ? x.size() < y.size() : x < y;
}

/// Backward calls run in another order than their numbers say when a loss is the sum of several forward calls.
void SortByTime(const NodeGraph& graph, std::vector<uint32_t>* calls) {
  const auto& nodes = graph.nodes;
  const bool recorded =
      std::all_of(calls->begin(), calls->end(), [&](uint32_t id) { return nodes[id].op != kNoIndex; });
  std::sort(calls->begin(), calls->end(), [&](uint32_t a, uint32_t b) {
    return recorded ? nodes[a].op < nodes[b].op : LowerNumber(nodes[a].name, nodes[b].name);
  });
}

/// The call of gradient `k`. A module that is called several times for one gradient completes it with the last call.
uint32_t CallOf(const NodeGraph& graph, const Module& module, size_t k) {
  const size_t grads = module.grads.size(), calls = module.calls.size();
  if (grads <= calls && calls % grads == 0) return module.calls[(k + 1) * (calls / grads) - 1];
  // Otherwise the call that was recorded next.
  for (uint32_t id : module.calls) {
    if (graph.nodes[id].op != kNoIndex && graph.nodes[id].op > module.grads[k]) return id;
  }
  return module.calls.back();
}

}  // namespace

void AddParameterGrads(const RankFiles& files, NodeGraph* graph) {
  std::vector<std::string_view> prefixes;
  std::unordered_map<std::string_view, Module> modules;
  const auto& ops = files.dump.ops();
  std::vector<bool> listed(ops.size());
  for (const Node& node : graph->nodes)
    if (node.op != kNoIndex) listed[node.op] = true;
  for (uint32_t i = 0; i < ops.size(); ++i) {
    if (listed[i]) continue;  // without a look at its name, which lies anywhere in the file
    const size_t n = GradPrefix(ops[i].name);
    if (n == std::string_view::npos || graph->Find(ops[i].name) != kNoIndex) continue;
    const auto [it, fresh] = modules.try_emplace(ops[i].name.substr(0, n));
    if (fresh) prefixes.push_back(it->first);
    it->second.grads.push_back(i);
  }
  if (modules.empty()) return;
  for (uint32_t id = 1; id < graph->nodes.size(); ++id) {
    std::string_view prefix, number;
    if (!SplitCall(graph->nodes[id].name, "backward", &prefix, &number)) continue;
    if (const auto it = modules.find(prefix); it != modules.end()) it->second.calls.push_back(id);
  }
  for (std::string_view prefix : prefixes) {
    Module& module = modules[prefix];
    if (module.calls.empty()) continue;
    SortByTime(*graph, &module.calls);
    for (size_t k = 0; k < module.grads.size(); ++k) {
      const uint32_t id = graph->Add(ops[module.grads[k]].name, NodeType::kModule);
      graph->nodes[id].op = module.grads[k];
      graph->SetParent(id, CallOf(*graph, module, k));
    }
  }
}

}  // namespace msprobe
