// Activation checkpointing runs parts of the forward pass again during the backward pass. Those modules are recorded at
// the top level; here they go back under the backward node of the module that holds the original.
#include <algorithm>
#include <unordered_set>

#include "base/text.h"
#include "graph/tree/builder.h"

namespace msprobe {
namespace {

struct Frame {
  std::string_view file, function;
};

std::string_view Strip(std::string_view s) {
  static constexpr std::string_view kSpace = " \t\r\n\v\f";
  const size_t begin = s.find_first_not_of(kSpace);
  if (begin == std::string_view::npos) return {};
  return s.substr(begin, s.find_last_not_of(kSpace) - begin + 1);
}

// "File /a/b.py, line 12, in forward, \n code"
bool ParseFrame(std::string_view text, Frame* frame) {
  text = Strip(text);
  const size_t in = text.find(", in ");
  if (in == std::string_view::npos) return false;
  std::string_view function = text.substr(in + 5);
  function = function.substr(0, function.find(", in "));
  frame->function = Strip(function.substr(0, function.find(',')));
  std::string_view file = text.substr(0, text.find(", line "));
  if (StartsWith(file, "File ")) file.remove_prefix(5);
  frame->file = Strip(file);
  return true;
}

// The name of a top-level module is short; a long one was nested when it ran for the first time.
bool LooksNested(const std::vector<std::string_view>& segments) {
  const size_t n = segments.size();
  if (n > 7) return true;
  if (n == 7) return !(IsDigits(segments[1]) && IsDigits(segments[3]));
  return n == 6 && !IsDigits(segments[1]);
}

std::string Twin(std::string_view name, std::string_view from, std::string_view to) {
  std::string_view prefix, number;
  if (!SplitCall(name, from, &prefix, &number)) return {};
  return std::string(prefix) + "." + std::string(to) + "." + std::string(number);
}

class RecomputeFinder {
 public:
  RecomputeFinder(const RankFiles& files, const NodeGraph& graph) : files_(files), graph_(graph) {}

  /// Marks the modules at the top level that the stack shows to be recomputed.
  static void Mark(const RankFiles& files, NodeGraph* graph) {
    const std::string_view framework = files.dump.framework();
    if (!framework.empty() && framework != "pytorch") return;
    RecomputeFinder finder(files, *graph);
    for (uint32_t id : graph->nodes[0].children) {
      Node& node = graph->nodes[id];
      if (node.type == NodeType::kModule) node.recomputed = finder.StackFits(node.name);
    }
  }

  /// Positions in the root's children of modules that are recomputed ones.
  std::vector<size_t> Find() {
    const auto& top = graph_.nodes[0].children;
    std::unordered_set<std::string_view> at_top;
    for (uint32_t id : top) at_top.insert(graph_.nodes[id].name);
    std::unordered_set<std::string> partners;
    std::vector<size_t> found;
    for (size_t i = 0; i < top.size(); ++i) {
      const std::string_view name = graph_.nodes[top[i]].name;
      if (TypeOfName(name) != NodeType::kModule || !StackFits(name)) continue;
      if (partners.contains(std::string(name))) {
        found.push_back(i);
        continue;
      }
      const auto segments = Segments(name);
      if (segments.size() < 2 || !LooksNested(segments)) continue;
      // Forward and backward of a recomputed module always come as a pair.
      const std::string_view direction = segments[segments.size() - 2];
      const size_t tail = direction.size() + segments.back().size() + 1;
      const std::string partner = std::string(name.substr(0, name.size() - tail)) +
                                  (direction == "forward" ? "backward" : "forward") + "." +
                                  std::string(segments.back());
      if (!at_top.contains(partner)) continue;
      found.push_back(i);
      partners.insert(partner);
    }
    return found;
  }

 private:
  bool StackFits(std::string_view name) {
    const std::string_view framework = files_.dump.framework();
    if (!framework.empty() && framework != "pytorch") return true;
    const std::string forward = Twin(name, "backward", "forward");
    const auto id = files_.stack.StackOf(forward.empty() ? name : std::string_view(forward));
    if (!id) return false;
    const auto [it, fresh] = known_.try_emplace(*id, false);
    if (fresh) it->second = StackShowsRecompute(files_.stack.Frames(*id));
    return it->second;
  }

  const RankFiles& files_;
  const NodeGraph& graph_;
  std::unordered_map<uint32_t, bool> known_;
};

std::string_view CallPrefix(std::string_view name) {
  name = name.substr(0, name.rfind('.'));
  return name.substr(0, name.rfind('.'));
}

bool IsAncestor(const NodeGraph& graph, uint32_t ancestor, uint32_t node) {
  for (uint32_t at = graph.nodes[node].parent; at != kNoIndex; at = graph.nodes[at].parent)
    if (at == ancestor) return true;
  return false;
}

}  // namespace

bool StackShowsRecompute(const std::vector<std::string>& frames) {
  std::vector<Frame> parsed;
  Frame frame;
  for (const auto& text : frames)
    if (ParseFrame(text, &frame)) parsed.push_back(frame);
  for (const Frame& f : parsed)
    if (f.function == "recompute_fn" && EndsWith(f.file, "torch/utils/checkpoint.py")) return true;
  for (size_t i = 0; i < parsed.size(); ++i) {
    const Frame& f = parsed[i];
    if (f.function != "backward" && !(f.function == "checkpoint_function_backward" && Contains(f.file, "megatron")))
      continue;
    for (size_t k = i + 1; k <= i + 2 && k < parsed.size(); ++k)
      if (EndsWith(parsed[k].file, "torch/autograd/function.py")) return true;
  }
  return false;
}

void RepairRecompute(const RankFiles& files, NodeGraph* graph) {
  RecomputeFinder::Mark(files, graph);
  const std::vector<size_t> found = RecomputeFinder(files, *graph).Find();
  if (found.empty()) return;
  std::unordered_map<std::string_view, std::vector<uint32_t>> originals;  // by call prefix, in order of execution
  for (size_t i : found) originals.try_emplace(CallPrefix(graph->nodes[graph->nodes[0].children[i]].name));
  for (uint32_t id = 1; id < graph->nodes.size(); ++id) {
    const Node& node = graph->nodes[id];
    std::string_view prefix, number;
    if (node.parent == kNoIndex || node.parent == 0 || TypeOfName(node.name) != NodeType::kModule) continue;
    if (!SplitCall(node.name, "forward", &prefix, &number)) continue;
    if (const auto it = originals.find(prefix); it != originals.end()) it->second.push_back(id);
  }
  std::unordered_map<std::string_view, size_t> next[2];  // how many originals each direction has used
  std::unordered_set<uint32_t> moved;
  const std::vector<uint32_t> top = graph->nodes[0].children;
  for (size_t i : found) {
    const uint32_t id = top[i];
    std::string_view prefix, number;
    const bool forward = SplitCall(graph->nodes[id].name, "forward", &prefix, &number);
    const std::string_view key = CallPrefix(graph->nodes[id].name);
    const auto& list = originals[key];
    size_t& used = next[forward ? 0 : 1][key];
    if (used >= list.size()) continue;
    const uint32_t original = list[used++];
    const std::string_view up_name = graph->nodes[graph->nodes[original].parent].name;
    const std::string turned = Twin(up_name, "forward", "backward");
    const uint32_t up = graph->Find(turned.empty() ? up_name : std::string_view(turned));
    if (up == kNoIndex || up == id || IsAncestor(*graph, id, up)) continue;
    graph->SetParent(id, up);
    moved.insert(id);
  }
  auto& children = graph->nodes[0].children;
  std::erase_if(children, [&](uint32_t id) { return moved.contains(id); });
}

}  // namespace msprobe
