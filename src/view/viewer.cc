#include "view/viewer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "view/graph_cache.h"
#include "view/label.h"

namespace msprobe::view {
namespace {

char Lower(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + ('a' - 'A')) : c; }

// `needle` is in lower case.
bool ContainsNoCase(std::string_view text, std::string_view needle) {
  if (needle.empty()) return true;
  if (needle.size() > text.size()) return false;
  const size_t last = text.size() - needle.size();
  for (size_t i = 0; i <= last; ++i) {
    if (Lower(text[i]) != needle[0]) continue;
    size_t k = 1;
    while (k < needle.size() && Lower(text[i + k]) == needle[k]) ++k;
    if (k == needle.size()) return true;
  }
  return false;
}

bool Unmatched(const RankGraph& graph, const TreeNode& node) { return graph.compared && node.partner == kNoNode; }

bool Keeps(NodeFilter filter, const RankGraph& graph, const TreeNode& node) {
  const bool unmatched = Unmatched(graph, node);
  switch (filter) {
    case NodeFilter::kAny: return true;
    case NodeFilter::kPass: return node.level == Level::kPass;
    case NodeFilter::kWarning: return node.level == Level::kWarning;
    case NodeFilter::kError: return node.level == Level::kError;
    case NodeFilter::kUnmatched: return unmatched;
    case NodeFilter::kNone: return !unmatched && node.level == Level::kNone;
    case NodeFilter::kMedium: return node.overflow == Overflow::kMedium;
    case NodeFilter::kHigh: return node.overflow == Overflow::kHigh;
    case NodeFilter::kCritical: return node.overflow == Overflow::kCritical;
    case NodeFilter::kOverflow: return node.overflow != Overflow::kNone;
  }
  return false;
}

SideSummary Summarize(const RankGraph& graph, const Tree& tree) {
  SideSummary sum;
  sum.nodes = tree.size();
  for (uint32_t i = 0; i < tree.size(); ++i) {
    const TreeNode& n = tree[i];
    if (Unmatched(graph, n)) {
      ++sum.unmatched;
      continue;
    }
    switch (n.level) {
      case Level::kPass: ++sum.pass; break;
      case Level::kWarning: ++sum.warning; break;
      case Level::kError: ++sum.error; break;
      case Level::kNone: ++sum.none; break;
    }
  }
  return sum;
}

// The graph a question is about, held while it is answered.
struct Held {
  std::shared_ptr<const VisFile> file;
  std::shared_ptr<const RankGraph> graph;
  const Tree& tree(Side side) const { return side == Side::kNpu ? graph->npu : graph->bench; }
  const Tree& other(Side side) const { return side == Side::kNpu ? graph->bench : graph->npu; }

  NodeSummary Summary(Side side, uint32_t i) const {
    const Tree& t = tree(side);
    const TreeNode& n = t[i];
    NodeSummary s;
    s.name = t.Name(i);
    s.label = ShortLabel(t.Name(i), n.type == 0, n.parent == t.root());
    s.type = n.type;
    s.children = n.children;
    s.order = n.order;
    s.micro_step = n.micro_step;
    s.level = n.level;
    s.overflow = n.overflow;
    s.counts = n.counts;
    if (n.partner != kNoNode) s.matched = other(side).Name(n.partner);
    return s;
  }

  StatusOr<uint32_t> Find(const GraphKey& key, Side side, std::string_view name) const {
    const Tree& t = tree(side);
    const char* side_name = side == Side::kNpu ? "NPU" : "Bench";
    if (t.empty())
      return BadInput(fmt::format("{} has no {} side at step {} rank {}: it is a single graph", key.file, side_name,
                                  key.step, key.rank));
    const uint32_t i = name.empty() ? t.root() : t.Find(name);
    if (i == kNoNode)
      return BadInput(fmt::format("{} has no {} node {} at step {} rank {}: use a name that it lists", key.file,
                                  side_name, name, key.step, key.rank));
    return i;
  }
};

}  // namespace

std::optional<NodeFilter> ParseNodeFilter(std::string_view word) {
  static constexpr std::pair<std::string_view, NodeFilter> kWords[] = {{"", NodeFilter::kAny},
                                                                       {"pass", NodeFilter::kPass},
                                                                       {"warning", NodeFilter::kWarning},
                                                                       {"error", NodeFilter::kError},
                                                                       {"unmatched", NodeFilter::kUnmatched},
                                                                       {"none", NodeFilter::kNone},
                                                                       {"medium", NodeFilter::kMedium},
                                                                       {"high", NodeFilter::kHigh},
                                                                       {"critical", NodeFilter::kCritical},
                                                                       {"overflow", NodeFilter::kOverflow}};
  for (const auto& [name, filter] : kWords) {
    if (word == name) return filter;
  }
  return std::nullopt;
}

struct Viewer::Cache {
  Cache(const GraphDirectory& d, size_t bytes) : directory(d), graphs(bytes) {}
  const GraphDirectory& directory;
  GraphCache graphs;

  StatusOr<std::shared_ptr<const VisFile>> File(std::string_view name) {
    MSP_ASSIGN_OR_RETURN(auto found, directory.Resolve(name));
    return graphs.File(found.first, found.second, name);
  }
  StatusOr<Held> Hold(const GraphKey& key) {
    Held held;
    MSP_ASSIGN_OR_RETURN(held.file, File(key.file));
    MSP_ASSIGN_OR_RETURN(held.graph, graphs.Graph(held.file, key.step, key.rank));
    return held;
  }
};

Viewer::Viewer(GraphDirectory directory, size_t cache_bytes)
    : directory_(std::move(directory)), cache_(std::make_unique<Cache>(directory_, cache_bytes)) {}
Viewer::~Viewer() = default;

StatusOr<std::unique_ptr<Viewer>> Viewer::Open(const std::string& path, size_t cache_bytes) {
  MSP_ASSIGN_OR_RETURN(GraphDirectory directory, GraphDirectory::Open(path));
  return std::unique_ptr<Viewer>(new Viewer(std::move(directory), cache_bytes));
}

StatusOr<FileList> Viewer::Files() {
  FileList list;
  list.root = directory_.shown();
  std::vector<FoundFile> found;
  directory_.List(&found, &list.skipped);
  for (FoundFile& f : found) {
    auto file = cache_->File(f.file);
    if (file.ok()) {
      list.files.push_back(std::move(f));
    } else {
      list.skipped.push_back({f.file, file.status().message()});
    }
  }
  std::sort(list.skipped.begin(), list.skipped.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  return list;
}

StatusOr<VisConfig> Viewer::Config(std::string_view file) {
  MSP_ASSIGN_OR_RETURN(auto open, cache_->File(file));
  return open->config();
}

StatusOr<GraphSummary> Viewer::Summary(const GraphKey& key) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  const Tree& npu = held.graph->npu;
  GraphSummary out;
  out.npu = Summarize(*held.graph, npu);
  if (held.graph->compared) out.bench = Summarize(*held.graph, held.graph->bench);
  uint32_t first_error = kNoNode, first_warning = kNoNode, first_overflow = kNoNode;
  for (uint32_t i = 0; i < npu.size(); ++i) {
    const TreeNode& n = npu[i];
    if (n.level == Level::kError && first_error == kNoNode) first_error = i;
    if (n.level == Level::kWarning && first_warning == kNoNode) first_warning = i;
    if (n.overflow == Overflow::kNone) continue;
    ++(n.overflow == Overflow::kMedium ? out.medium : n.overflow == Overflow::kHigh ? out.high : out.critical);
    if (first_overflow == kNoNode || (out.critical == 1 && n.overflow == Overflow::kCritical)) first_overflow = i;
  }
  if (first_error != kNoNode) out.first_error = held.Summary(Side::kNpu, first_error);
  if (first_warning != kNoNode) out.first_warning = held.Summary(Side::kNpu, first_warning);
  if (first_overflow != kNoNode) out.first_overflow = held.Summary(Side::kNpu, first_overflow);
  return out;
}

StatusOr<ChildList> Viewer::Children(const GraphKey& key, Side side, std::string_view name, uint64_t offset,
                                     uint64_t limit) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(const uint32_t node, held.Find(key, side, name));
  const Tree& tree = held.tree(side);
  ChildList out;
  out.node = held.Summary(side, node);
  out.total = tree[node].children;
  if (offset < out.total) out.children.reserve(std::min<uint64_t>(limit, out.total - offset));
  uint64_t at = 0;
  for (uint32_t i = tree[node].first_child; i != kNoNode && out.children.size() < limit; i = tree[i].next_sibling) {
    if (at++ >= offset) out.children.push_back(held.Summary(side, i));
  }
  return out;
}

StatusOr<std::vector<std::string>> Viewer::Path(const GraphKey& key, Side side, std::string_view name) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(uint32_t node, held.Find(key, side, name));
  const Tree& tree = held.tree(side);
  std::vector<std::string> path;
  for (; node != kNoNode; node = tree[node].parent) path.emplace_back(tree.Name(node));
  std::reverse(path.begin(), path.end());
  return path;
}

StatusOr<NodeDetail> Viewer::Node(const GraphKey& key, Side side, std::string_view name) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(const uint32_t node, held.Find(key, side, name));
  NodeDetail out;
  out.node = held.Summary(side, node);
  MSP_ASSIGN_OR_RETURN(out.record, held.file->LoadRecord(held.tree(side)[node].rowid));
  const uint32_t partner = held.tree(side)[node].partner;
  if (partner == kNoNode) return out;
  PartnerDetail other;
  other.side = side == Side::kNpu ? Side::kBench : Side::kNpu;
  other.node = held.Summary(other.side, partner);
  MSP_ASSIGN_OR_RETURN(other.record, held.file->LoadRecord(held.other(side)[partner].rowid));
  out.partner = std::move(other);
  return out;
}

StatusOr<SearchHits> Viewer::Search(const GraphKey& key, Side side, const SearchQuery& query) {
  MSP_ASSIGN_OR_RETURN(const Held held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN([[maybe_unused]] const uint32_t root, held.Find(key, side, ""));
  const Tree& tree = held.tree(side);
  std::string needle(query.text.size(), '\0');
  std::transform(query.text.begin(), query.text.end(), needle.begin(), Lower);
  SearchHits out;
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (!Keeps(query.filter, *held.graph, tree[i]) || (query.leaves_only && tree[i].children != 0)) continue;
    if (!ContainsNoCase(tree.Name(i), needle)) continue;
    if (out.total++ >= query.offset && out.hits.size() < query.limit) out.hits.push_back(held.Summary(side, i));
  }
  return out;
}

}  // namespace msprobe::view
