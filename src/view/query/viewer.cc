#include "view/query/viewer.h"

#include <fmt/core.h>

#include <algorithm>
#include <utility>

#include "base/text.h"
#include "sheet/check_names.h"
#include "view/file/rulings.h"
#include "view/query/graph_memo.h"
#include "view/query/query_caches.h"
#include "view/query/recompare.h"

namespace msprobe::view {
namespace {

constexpr uint64_t kMostCheckBytes = uint64_t{512} << 20;  // of a table that becomes a page

SideSummary Summarize(const GraphSides& graph, const Tree& tree) {
  SideSummary sum;
  sum.nodes = tree.size();
  for (uint32_t i = 0; i < tree.size(); ++i) {
    if (tree.Type(i) == kCollection) continue;
    if (graph.compared && !tree.IsMatched(i)) {
      ++sum.unmatched;
      continue;
    }
    switch (tree.LevelOf(i)) {
      case Verdict::kPass: ++sum.pass; break;
      case Verdict::kWarning: ++sum.warning; break;
      case Verdict::kError: ++sum.error; break;
      case Verdict::kNone: ++sum.none; break;
    }
  }
  return sum;
}

/// Both runs have it, as the infinities of a mask.
bool OverflowsAlike(const GraphSides& graph, uint32_t node) {
  if (!graph.compared || !graph.target.IsMatched(node)) return false;
  return graph.golden.OverflowAt(graph.target[node].partner) == graph.target.OverflowAt(node);
}

GraphCounts SummarizeGraph(const QueryContext& held) {
  const Tree& target = held.graph->target;
  GraphCounts out;
  out.target = Summarize(*held.graph, target);
  if (held.graph->compared) out.golden = Summarize(*held.graph, held.graph->golden);
  if (held.file->config().verdicts) out.rulings = CountRulings(target);
  uint32_t first_error = kNoNode, first_warning = kNoNode, first_overflow = kNoNode, first_critical = kNoNode;
  for (uint32_t i = 0; i < target.size(); ++i) {
    if (target.Type(i) == kCollection) continue;
    const Verdict level = target.LevelOf(i);
    const Overflow overflow = target.OverflowAt(i);
    if (level == Verdict::kError && first_error == kNoNode) first_error = i;
    if (level == Verdict::kWarning && first_warning == kNoNode) first_warning = i;
    if (overflow == Overflow::kNone) continue;
    ++(overflow == Overflow::kMedium ? out.medium : overflow == Overflow::kHigh ? out.high : out.critical);
    if (OverflowsAlike(*held.graph, i)) continue;
    if (first_overflow == kNoNode) first_overflow = i;
    if (first_critical == kNoNode && overflow == Overflow::kCritical) first_critical = i;
  }
  if (first_critical != kNoNode) first_overflow = first_critical;
  if (first_error != kNoNode) out.first_error = held.Summary(Side::kTarget, first_error);
  if (first_warning != kNoNode) out.first_warning = held.Summary(Side::kTarget, first_warning);
  if (first_overflow != kNoNode) out.first_overflow = held.Summary(Side::kTarget, first_overflow);
  return out;
}

}  // namespace

Viewer::Viewer(GraphDirectory directory, size_t cache_bytes, std::string tensors)
    : directory_(std::move(directory)),
      cache_(std::make_unique<QueryCaches>(directory_, cache_bytes, std::move(tensors))) {}
Viewer::~Viewer() = default;

StatusOr<std::unique_ptr<Viewer>> Viewer::Open(const std::string& path, size_t cache_bytes) {
  MSP_ASSIGN_OR_RETURN(GraphDirectory directory, GraphDirectory::Open(path));
  std::string tensors = directory.single() ? std::string() : directory.real();
  return std::unique_ptr<Viewer>(new Viewer(std::move(directory), cache_bytes, std::move(tensors)));
}

StatusOr<std::unique_ptr<Viewer>> Viewer::OpenTrusted(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(GraphDirectory directory, GraphDirectory::Open(path));
  return std::unique_ptr<Viewer>(new Viewer(std::move(directory), kCacheBytes, "/"));
}

Status Viewer::ReadAhead() {
  std::vector<FoundFile> found = directory_.List().files;
  std::erase_if(found, [](const FoundFile& f) { return IsTrendName(f.file) || IsCheckFloat64Name(f.file); });
  if (found.size() != 1) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const VisSettings config, Config(found[0].file));
  if (config.steps.empty() || config.ranks.empty()) return OkStatus();
  return Summary({found[0].file, config.steps[0], config.ranks[0]}).status();  // what the page asks for first
}

StatusOr<FileList> Viewer::Files() {
  FileList list;
  list.root = directory_.shown();
  DirectoryContents there = directory_.List();
  std::vector<FoundFile>& found = there.files;
  list.skipped = std::move(there.skipped);
  list.reports = std::move(there.reports);
  list.dumps = std::move(there.dumps);
  for (const std::string& run : there.runs) {
    const auto real = directory_.ResolveRun(run);
    if (!real.ok() || !IsRunDirectory(*real)) continue;
    list.runs.push_back(RunCache::Describe(*real));
    list.runs.back().directory = run;
  }
  for (FoundFile& f : found) {
    if (IsTrendName(f.file)) {
      list.trends.push_back(std::move(f));
      continue;
    }
    if (IsCheckFloat64Name(f.file)) {
      list.checks.push_back(std::move(f));
      continue;
    }
    auto file = cache_->File(f.file);
    if (file.ok()) {
      list.files.push_back(std::move(f));
    } else {
      list.skipped.push_back({f.file, file.status().text()});
    }
  }
  std::sort(list.skipped.begin(), list.skipped.end(), [](const auto& a, const auto& b) { return a.file < b.file; });
  return list;
}

StatusOr<std::string> Viewer::Report(std::string_view file) const { return directory_.ResolveReport(file); }

StatusOr<std::string> Viewer::CheckTable(std::string_view file) const {
  if (!IsCheckFloat64Name(file))
    return BadInput(fmt::format("{} is no table of acc_check: choose from the list of files", file));
  MSP_ASSIGN_OR_RETURN(auto found, directory_.Resolve(file));
  if (found.second.size > kMostCheckBytes)
    return BadInput(
        fmt::format("{} is larger than {} MiB: open it in a program for tables", file, kMostCheckBytes >> 20));
  return std::move(found.first);
}

StatusOr<std::shared_ptr<TrendFile>> Viewer::Trend(std::string_view file) {
  MSP_ASSIGN_OR_RETURN(const auto found, directory_.Resolve(file));
  return cache_->trends.File(found.first, found.second, file);
}

StatusOr<std::vector<int64_t>> Viewer::RunRanks(std::string_view run) {
  MSP_ASSIGN_OR_RETURN(const std::string real, directory_.ResolveRun(run));
  return cache_->runs.Ranks(real);
}

StatusOr<std::shared_ptr<OpenRank>> Viewer::RunRank(std::string_view run, int64_t rank) {
  MSP_ASSIGN_OR_RETURN(const std::string real, directory_.ResolveRun(run));
  return cache_->runs.Rank(real, rank);
}

StatusOr<int64_t> Viewer::RunChanged(std::string_view run, int64_t rank) {
  MSP_ASSIGN_OR_RETURN(const std::string real, directory_.ResolveRun(run));
  return cache_->runs.Changed(real, rank);
}

std::optional<RunStatus> Viewer::RunHealth(std::string_view run) const {
  const auto real = directory_.ResolveRun(run);
  if (!real.ok()) return std::nullopt;
  const std::chrono::duration<double> now = std::chrono::system_clock::now().time_since_epoch();
  auto status = ReadRunStatus(*real, now.count());
  return status.ok() ? std::optional<RunStatus>(*std::move(status)) : std::nullopt;
}

StatusOr<RunFindings> Viewer::RunEvents(std::string_view run, std::chrono::milliseconds patience) {
  MSP_ASSIGN_OR_RETURN(const std::string real, directory_.ResolveRun(run));
  const FoundRun now = RunCache::Describe(real);
  return cache_->judgements.Of(real, now.size, patience);
}

StatusOr<VisSettings> Viewer::Config(std::string_view file) {
  MSP_ASSIGN_OR_RETURN(auto open, cache_->File(file));
  return open->config();
}

StatusOr<GraphCounts> Viewer::Summary(const GraphAddress& key) {
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  GraphMemo& memo = *held.graph->memo;
  std::lock_guard lock(memo.summary_mutex);
  if (!memo.summary) memo.summary = SummarizeGraph(held);
  return *memo.summary;
}

StatusOr<ChildList> Viewer::Children(const GraphAddress& key, Side side, std::string_view name, uint64_t offset,
                                     uint64_t limit) {
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
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

StatusOr<std::vector<std::string>> Viewer::Path(const GraphAddress& key, Side side, std::string_view name) {
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(uint32_t node, held.Find(key, side, name));
  const Tree& tree = held.tree(side);
  std::vector<std::string> path;
  for (; node != kNoNode; node = tree[node].parent) path.emplace_back(tree.Name(node));
  std::reverse(path.begin(), path.end());
  return path;
}

StatusOr<NodeDetail> Viewer::Node(const GraphAddress& key, Side side, std::string_view name) {
  MSP_ASSIGN_OR_RETURN(const QueryContext held, cache_->Hold(key));
  MSP_ASSIGN_OR_RETURN(const uint32_t node, held.Find(key, side, name));
  NodeDetail out;
  out.node = held.Summary(side, node);
  MSP_ASSIGN_OR_RETURN(out.record, LoadEditedRecord(*held.file, *held.graph, side == Side::kTarget, node, held.meter));
  const uint32_t partner = held.tree(side)[node].partner;
  if (partner == kNoNode) return out;
  PartnerDetail other;
  other.side = side == Side::kTarget ? Side::kGolden : Side::kTarget;
  other.node = held.Summary(other.side, partner);
  MSP_ASSIGN_OR_RETURN(other.record,
                       LoadEditedRecord(*held.file, *held.graph, other.side == Side::kTarget, partner, held.meter));
  out.partner = std::move(other);
  return out;
}

}  // namespace msprobe::view
