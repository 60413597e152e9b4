#include "graph/tree/builder.h"

#include <sys/stat.h>

#include <algorithm>
#include <climits>
#include <cstdlib>
#include <map>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "graph/tree/flat_structure.h"

namespace msprobe {
namespace {

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

Status NoStructure(const std::string& construct) {
  return BadInput(
      Msg("{} holds no model structure: a graph needs a dump at level L0 or mix, so dump again with one of them",
          construct));
}

}  // namespace

StatusOr<RankFiles> OpenRank(const std::string& dir, WithoutModules how) {
  std::optional<DumpFile> dump;
  std::optional<StackFile> stack;
  std::optional<ConstructLines> construct;
  const std::string stack_path = JoinPath(dir, "stack.json");
  const std::string construct_path = JoinPath(dir, "construct.json");
  if (!PathExists(construct_path) && PathExists(JoinPath(dir, "dump.json"))) {
    return BadInput(
        Msg("{} has no construct.json: a graph needs a dump at level L0 or mix, so dump again with one of them", dir));
  }
  if (struct stat st{}; stat(construct_path.c_str(), &st) == 0 && S_ISREG(st.st_mode) && st.st_size == 0) {
    return NoStructure(construct_path);
  }
  MSP_RETURN_IF_ERROR(ParallelFor(3, [&](size_t i) -> Status {
    if (i == 0) {
      MSP_ASSIGN_OR_RETURN(auto file, ConstructLines::Open(construct_path));
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
  if (construct->entries.empty() && dump->ops().empty() && !dump->wholeness().whole()) {
    return BadInput(Msg("{} was cut before any op of it was written: there is nothing to show", dump->path()));
  }
  if (construct->entries.empty() && how == WithoutModules::kRefused) return NoStructure(construct_path);
  if (construct->entries.empty()) PutCallsInOneModule(*dump, &*construct);
  RankFiles files{dir, std::move(*dump), std::move(*stack), std::move(*construct), std::nullopt, {}};
  if (!PathExists(stack_path)) {
    files.warning = Msg("{} does not exist: nodes have no stack, recomputed modules stay at the top level", stack_path);
  }
  files.data_dir = DataDir(dir, files.dump);
  return files;
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
    return BadInput(
        Msg("{} nests modules more than {} levels deep: no model does, check that the file belongs to the dump",
            JoinPath(rank.files.dir, "construct.json"), kMostLevels));
  }
  return OkStatus();
}

}  // namespace

StatusOr<RankGraph> BuildRankGraph(const std::string& dir, WithoutModules how) {
  MSP_ASSIGN_OR_RETURN(RankFiles files, OpenRank(dir, how));
  RankGraph out{std::move(files), NodeGraph(), {}, 0, nullptr};
  MSP_RETURN_IF_ERROR(AddConstructNodes(out.files, &out.graph, &out.line));
  out.files.construct.index.clear();
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
