#include "graph/builder.h"

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/text.h"

namespace msprobe {
namespace {

// Looking up an op touches its name in dump.json. What is behind need not stay in memory.
constexpr uint32_t kEntriesBetweenReleases = 16384;

/// construct.json by name, with the questions that the parent repairs ask.
class Construct {
 public:
  explicit Construct(const ConstructLines& file) : file_(file) {
    index_.Reserve(file.entries.size());
    for (size_t i = 0; i < file.entries.size(); ++i) index_.Add(file.entries[i].name, static_cast<uint32_t>(i));
  }
  bool Has(std::string_view name) const { return index_.Find(name) != NameIndex::kNone; }
  /// Parent as written; empty when there is none or no such entry.
  std::string_view ParentOf(std::string_view name) const {
    const uint32_t i = index_.Find(name);
    return i == NameIndex::kNone ? std::string_view() : file_.entries[i].parent;
  }
  /// The name as construct.json stores it (a stable string), or empty.
  std::string_view Stored(std::string_view name) const {
    const uint32_t i = index_.Find(name);
    return i == NameIndex::kNone ? std::string_view() : file_.entries[i].name;
  }

 private:
  const ConstructLines& file_;
  NameIndex index_;
};

std::string TurnCall(std::string_view name, std::string_view from, std::string_view to) {
  std::string_view prefix, number;
  if (!SplitCall(name, from, &prefix, &number)) return std::string(name);
  std::string out(prefix);
  out += '.';
  out += to;
  out += '.';
  out += number;
  return out;
}

// A backward node without parent goes where its forward twin is, on the backward side.
std::string_view ParentOfLostBackward(const Construct& construct, std::string_view name) {
  std::string_view prefix, number;
  if (SplitCall(name, "backward", &prefix, &number)) {
    const std::string_view up = construct.ParentOf(TurnCall(name, "backward", "forward"));
    return up.empty() ? up : construct.Stored(TurnCall(up, "forward", "backward"));
  }
  if (EndsWith(name, ".backward")) {
    const std::string_view up = construct.ParentOf(ReplaceAll(name, "backward", "forward"));
    return up.empty() ? up : construct.Stored(ReplaceAll(up, "forward", "backward"));
  }
  return {};
}

std::string_view DropSegments(std::string_view name, int n) {
  for (; n > 0; --n) name = name.substr(0, name.rfind('.'));
  return name;
}

// In-place operators swallow the backward hook of the layer around them, so what follows is recorded under the wrong
// parent.
std::string_view ParentAfterInplace(const Construct& construct, std::string_view name, std::string_view parent) {
  std::string_view prefix, number;
  if (!SplitCall(name, "backward", &prefix, &number)) return parent;
  if (std::count(name.begin(), name.end(), '.') < 4 || std::count(parent.begin(), parent.end(), '.') < 3) return parent;
  if (DropSegments(name, 4) == DropSegments(parent, 3)) return parent;
  const std::string twin = TurnCall(name, "backward", "forward");
  if (!construct.Has(twin)) return parent;
  const std::string_view up = construct.ParentOf(twin);
  if (up.empty()) return {};
  const std::string_view moved = construct.Stored(TurnCall(up, "forward", "backward"));
  return moved.empty() ? parent : moved;
}

uint32_t StackId(const StackFile& file, std::string_view name) {
  const auto id = file.StackOf(name);
  return id && !file.Frames(*id).empty() ? *id : kNoIndex;
}

// A backward node shows the stack of its forward node, as far as that one is known already.
uint32_t StackOfNode(const RankFiles& files, const NodeGraph& graph, std::string_view name) {
  const uint32_t own = StackId(files.stack, name);
  if (own != kNoIndex) return own;
  std::string twin;
  std::string_view prefix, number;
  if (SplitCall(name, "backward", &prefix, &number)) {
    twin = std::string(prefix) + ".forward.0";
  } else if (EndsWith(name, ".backward")) {
    twin = ReplaceAll(name, "backward", "forward");
  } else {
    return kNoIndex;
  }
  const uint32_t forward = graph.Find(twin);
  return forward == kNoIndex ? kLostStack : graph.nodes[forward].stack;
}

std::string RealPath(const std::string& path) {
  char buf[PATH_MAX];
  return realpath(path.c_str(), buf) ? std::string(buf) : path;
}

// The recorded directory may be that of another machine: then the tensors are beside construct.json.
std::optional<std::string> DataDir(const std::string& dir, const DumpFile& dump) {
  if (dump.dump_data_dir().empty()) {
    const std::string_view head =
        dump.file().text().substr(0, dump.ops().empty() ? std::string_view::npos : dump.ops()[0].offset);
    const size_t key = head.find("\"dump_data_dir\"");
    if (key == std::string_view::npos) return "";
    const size_t value = head.find_first_not_of(" \t\r\n:", key + 15);
    return value != std::string_view::npos && head[value] == 'n' ? std::nullopt : std::optional<std::string>("");
  }
  const std::string here = RealPath(dir);
  if (DirName(dump.dump_data_dir()) == here) return std::string(dump.dump_data_dir());
  return JoinPath(here, "dump_tensor_data");
}

}  // namespace

StatusOr<RankFiles> OpenRank(const std::string& dir) {
  std::optional<DumpFile> dump;
  std::optional<StackFile> stack;
  std::optional<ConstructLines> construct;
  const std::string stack_path = JoinPath(dir, "stack.json");
  MSP_RETURN_IF_ERROR(ParallelFor(3, [&](size_t i) -> Status {
    if (i == 0) {
      MSP_ASSIGN_OR_RETURN(auto file, ConstructLines::Open(JoinPath(dir, "construct.json")));
      construct.emplace(std::move(file));
    } else if (i == 1) {
      MSP_ASSIGN_OR_RETURN(auto file, DumpFile::Open(JoinPath(dir, "dump.json")));
      dump.emplace(std::move(file));
    } else if (PathExists(stack_path)) {
      MSP_ASSIGN_OR_RETURN(auto file, StackFile::Open(stack_path));
      stack.emplace(std::move(file));
    } else {
      stack.emplace();
    }
    return OkStatus();
  }));
  if (construct->entries.empty()) {
    return BadInput(
        JoinPath(dir, "construct.json") +
        " holds no model structure: a graph needs a dump at level L0 or mix, so dump again with one of them");
  }
  RankFiles files{dir, std::move(*dump), std::move(*stack), std::move(*construct), std::nullopt, {}};
  if (!PathExists(stack_path)) {
    files.warning = stack_path + " does not exist: nodes have no stack, recomputed modules stay at the top level";
  }
  files.data_dir = DataDir(dir, files.dump);
  return files;
}

void AddConstructNodes(const RankFiles& files, NodeGraph* graph, std::vector<uint32_t>* line) {
  const auto& entries = files.construct.entries;
  const Construct construct(files.construct);
  graph->nodes.reserve(entries.size() + entries.size() / 8 + 16);
  graph->index.Reserve(graph->nodes.capacity());
  line->assign(1, 0);
  const bool has_steps = files.construct.megatron_micro_steps.has_value();
  std::unordered_map<std::string_view, int> steps;
  if (has_steps) {
    for (const auto& e : entries) steps.emplace(e.name, e.micro_step);
  }
  const auto get_or_add = [&](std::string_view name, uint32_t at) {
    if (const uint32_t known = graph->Find(name); known != kNoIndex) return known;
    const uint32_t stack = StackOfNode(files, *graph, name);
    const uint32_t id = graph->Add(name, TypeOfName(name));
    Node& node = graph->nodes[id];
    node.stack = stack;
    if (const auto op = files.dump.FindOp(name)) node.op = static_cast<uint32_t>(*op);
    if (has_steps) {
      const auto it = steps.find(name);
      node.micro_step = it == steps.end() ? 0 : it->second;
    }
    line->push_back(at);
    return id;
  };
  for (uint32_t i = 0; i < entries.size(); ++i) {
    if (i % kEntriesBetweenReleases == 0) files.dump.file().Release(0, files.dump.file().text().size());
    const std::string_view name = entries[i].name;
    std::string_view parent = entries[i].parent;
    parent = parent.empty() ? ParentOfLostBackward(construct, name) : ParentAfterInplace(construct, name, parent);
    const uint32_t up = parent.empty() ? 0 : get_or_add(parent, i);
    const uint32_t id = get_or_add(name, i);
    if (id == 0 || id == up || graph->nodes[id].parent != kNoIndex) continue;
    graph->SetParent(id, up);
    (*line)[id] = i;
  }
}

size_t AttachOrphans(const std::vector<uint32_t>& line, NodeGraph* graph) {
  std::vector<Node>& nodes = graph->nodes;
  std::vector<bool> seen(nodes.size());
  const auto mark = [&](uint32_t from) {
    std::vector<uint32_t> stack{from};
    seen[from] = true;
    while (!stack.empty()) {
      const uint32_t at = stack.back();
      stack.pop_back();
      for (uint32_t child : nodes[at].children) {
        if (seen[child]) continue;
        seen[child] = true;
        stack.push_back(child);
      }
    }
  };
  mark(0);
  size_t orphans = 0;
  // Nodes without a parent first; what is left after them goes in circles and is cut where it was first named.
  for (const bool circles : {false, true}) {
    for (uint32_t id = 1; id < nodes.size(); ++id) {
      if (seen[id] || (!circles && nodes[id].parent != kNoIndex)) continue;
      if (circles) std::erase(nodes[nodes[id].parent].children, id);
      graph->SetParent(id, 0);
      mark(id);
      ++orphans;
    }
  }
  if (orphans > 0) {
    auto& top = nodes[0].children;
    std::stable_sort(top.begin(), top.end(), [&](uint32_t a, uint32_t b) { return line[a] < line[b]; });
  }
  return orphans;
}

void CollectRootApis(NodeGraph* graph) {
  const std::vector<uint32_t> before = std::move(graph->nodes[0].children);
  std::vector<uint32_t> after;
  const auto is_api = [&](size_t i) { return i < before.size() && graph->nodes[before[i]].type == NodeType::kApi; };
  size_t count = 0;
  for (size_t i = 0; i < before.size();) {
    size_t end = i;
    while (is_api(end)) ++end;
    if (end < i + 2) {
      after.push_back(before[i++]);
      continue;
    }
    std::string name;
    do {
      name = std::string(kCollectionName) + "." + std::to_string(count++);
    } while (graph->Find(name) != kNoIndex);
    const uint32_t id = graph->AddOwned(std::move(name), NodeType::kCollection);
    Node& node = graph->nodes[id];
    node.parent = 0;
    node.children.assign(before.begin() + static_cast<ptrdiff_t>(i), before.begin() + static_cast<ptrdiff_t>(end));
    node.micro_step = graph->nodes[before[i]].micro_step;
    for (size_t k = i; k < end; ++k) graph->nodes[before[k]].parent = id;
    after.push_back(id);
    i = end;
  }
  graph->nodes[0].children = std::move(after);
}

namespace {

/// Each row lists the ancestors of its partner, so the size of a result grows with the depth of the graph.
Status CheckDepth(const RankGraph& rank) {
  constexpr uint32_t kMostLevels = 1000;  // Python's own limit of nested calls
  const NodeGraph& graph = rank.graph;
  std::vector<uint32_t> level(graph.nodes.size(), 0);
  for (auto it = graph.order.rbegin(); it != graph.order.rend(); ++it) {
    const Node& node = graph.nodes[*it];
    if (node.parent != kNoIndex) level[*it] = level[node.parent] + 1;
    if (level[*it] <= kMostLevels) continue;
    return BadInput(JoinPath(rank.files.dir, "construct.json") + " nests modules more than " +
                    std::to_string(kMostLevels) +
                    " levels deep: no model does, check that the file belongs to the dump");
  }
  return OkStatus();
}

}  // namespace

StatusOr<RankGraph> BuildRankGraph(const std::string& dir) {
  MSP_ASSIGN_OR_RETURN(RankFiles files, OpenRank(dir));
  RankGraph out{std::move(files), NodeGraph(), {}, 0};
  AddConstructNodes(out.files, &out.graph, &out.line);
  if (InterruptRequested()) return Interrupted();
  out.orphans = AttachOrphans(out.line, &out.graph);
  if (InterruptRequested()) return Interrupted();
  RepairRecompute(out.files, &out.graph);
  CollectRootApis(&out.graph);
  AddParameterGrads(out.files, &out.graph);
  out.graph.Sort();
  MSP_RETURN_IF_ERROR(CheckDepth(out));
  return out;
}

}  // namespace msprobe
