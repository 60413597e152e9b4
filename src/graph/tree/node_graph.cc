#include "graph/tree/node_graph.h"

#include <algorithm>
#include <array>

#include "base/text.h"

namespace msprobe {

namespace {

// Prefixes end with any character, not only a dot: that is how existing graphs were typed.
constexpr std::array<std::string_view, 2> kModulePrefixes{"Module", "Cell"};
constexpr std::array<std::string_view, 3> kModuleNames{"optimizer", "clip_grad", kRootName};
constexpr std::array<std::string_view, 12> kApiPrefixes{"Tensor",    "Torch",       "Functional",     "NPU",
                                                        "VF",        "Distributed", "Aten",           "Mint",
                                                        "Primitive", "Jit",         "MintFunctional", "MindSpeed"};

bool HasPrefixAndMore(std::string_view name, std::string_view prefix) {
  return name.size() > prefix.size() && StartsWith(name, prefix) && name[prefix.size()] != '\n';
}

}  // namespace

NodeGraph::NodeGraph() { Add(kRootName, NodeType::kModule); }

uint32_t NodeGraph::Find(std::string_view name) const {
  return index.Find(HashName(name), [&](uint32_t id) { return nodes[id].name == name; });
}

uint32_t NodeGraph::Add(std::string_view name, NodeType type) {
  const uint32_t id = static_cast<uint32_t>(nodes.size());
  Node node;
  node.name = name;
  node.type = type;
  nodes.push_back(std::move(node));
  index.Enter(HashName(name), id, [&](uint32_t known) { return nodes[known].name == name; });
  return id;
}

uint32_t NodeGraph::AddOwned(std::string name, NodeType type) {
  own_names.push_back(std::move(name));
  return Add(own_names.back(), type);
}

void NodeGraph::SetParent(uint32_t child, uint32_t parent) {
  nodes[child].parent = parent;
  nodes[parent].children.push_back(child);
}

std::vector<uint32_t> NodeGraph::PathTo(uint32_t node) const {
  std::vector<uint32_t> path;
  for (uint32_t at = node; at != kNoIndex && path.size() <= nodes.size(); at = nodes[at].parent) path.push_back(at);
  std::reverse(path.begin(), path.end());
  return path;
}

void NodeGraph::Sort() {
  order.clear();
  order.reserve(nodes.size());
  std::vector<std::pair<uint32_t, uint32_t>> stack{{0, 0}};  // node, next child
  std::vector<bool> seen(nodes.size());
  seen[0] = true;
  while (!stack.empty()) {
    auto& [node, next] = stack.back();
    if (next < nodes[node].children.size()) {
      const uint32_t child = nodes[node].children[next++];
      if (!seen[child]) {
        seen[child] = true;
        stack.emplace_back(child, 0);
      }
      continue;
    }
    order.push_back(node);
    stack.pop_back();
  }
}

NodeType TypeOfName(std::string_view name) {
  for (auto p : kModulePrefixes)
    if (HasPrefixAndMore(name, p)) return NodeType::kModule;
  for (auto p : kModuleNames)
    if (StartsWith(name, p)) return NodeType::kModule;
  for (auto p : kApiPrefixes)
    if (HasPrefixAndMore(name, p)) return NodeType::kApi;
  return NodeType::kModule;
}

bool SplitCall(std::string_view name, std::string_view direction, std::string_view* prefix, std::string_view* number) {
  const size_t dot = name.rfind('.');
  if (dot == std::string_view::npos || !IsDigits(name.substr(dot + 1))) return false;
  const std::string_view head = name.substr(0, dot);
  if (head.size() <= direction.size() || !EndsWith(head, direction)) return false;
  if (head[head.size() - direction.size() - 1] != '.') return false;
  *prefix = head.substr(0, head.size() - direction.size() - 1);
  *number = name.substr(dot + 1);
  return true;
}

std::vector<std::string_view> Segments(std::string_view name) {
  std::vector<std::string_view> out;
  for (size_t begin = 0;;) {
    const size_t dot = name.find('.', begin);
    out.push_back(name.substr(begin, dot == std::string_view::npos ? dot : dot - begin));
    if (dot == std::string_view::npos) return out;
    begin = dot + 1;
  }
}

std::string_view Segment(std::string_view name, size_t i) {
  size_t begin = 0;
  for (; i > 0; --i) {
    const size_t dot = name.find('.', begin);
    if (dot == std::string_view::npos) return {};
    begin = dot + 1;
  }
  const size_t dot = name.find('.', begin);
  return name.substr(begin, dot == std::string_view::npos ? dot : dot - begin);
}

std::string ReplaceAll(std::string_view text, std::string_view from, std::string_view to) {
  std::string out;
  for (size_t at = 0;;) {
    const size_t hit = text.find(from, at);
    out += text.substr(at, hit == std::string_view::npos ? hit : hit - at);
    if (hit == std::string_view::npos) return out;
    out += to;
    at = hit + from.size();
  }
}

}  // namespace msprobe
