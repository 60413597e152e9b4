// The questions that the page asks, answered as plain structs. Thread-safe.
// Errors: kUsage for a parameter that makes no sense, kBadInput for what is not there, kInternal for the rest.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "view/directory.h"
#include "view/overview.h"
#include "view/tensor_export.h"
#include "view/trend_file.h"
#include "view/vis_file.h"

namespace msprobe::view {

enum class Side : uint8_t { kNpu, kBench };

/// Which graph a question is about.
struct GraphKey {
  std::string file;
  int64_t step = 0, rank = 0;
};

struct FileList {
  std::string root;
  std::vector<FoundFile> files;
  std::vector<FoundFile> trends;  ///< .trend.db, not looked into
  std::vector<SkippedFile> skipped;
};

struct NodeSummary {
  std::string name, label;
  int type = 0;
  uint32_t children = 0;
  int64_t order = 0, micro_step = 0;
  Level level = Level::kNone;
  Overflow overflow = Overflow::kNone;
  std::optional<std::string> matched;
  SubtreeCounts counts;
};

struct SideSummary {
  uint64_t nodes = 0, pass = 0, warning = 0, error = 0, unmatched = 0, none = 0;
};

struct GraphSummary {
  SideSummary npu;
  std::optional<SideSummary> bench;
  std::optional<NodeSummary> first_error, first_warning, first_overflow;
  uint64_t medium = 0, high = 0, critical = 0;
};

struct ChildList {
  NodeSummary node;
  uint64_t total = 0;
  std::vector<NodeSummary> children;
};

struct PartnerDetail {
  Side side = Side::kBench;
  NodeSummary node;
  NodeRecord record;
};

struct NodeDetail {
  NodeSummary node;
  NodeRecord record;
  std::optional<PartnerDetail> partner;
};

/// What a search keeps: a set of levels as bits, of which one must be the node's; the empty set keeps every node.
enum class NodeFilter : uint8_t {
  kAny = 0,
  kPass = 1,
  kWarning = 2,
  kError = 4,
  kUnmatched = 8,
  kNone = 16,
  kMedium = 32,
  kHigh = 64,
  kCritical = 128,
  kOverflow = kMedium | kHigh | kCritical
};
/// Of words with commas between them; "" is kAny; nullopt where one is no level.
std::optional<NodeFilter> ParseNodeFilter(std::string_view words);

struct SearchQuery {
  std::string text;
  NodeFilter filter = NodeFilter::kAny;
  bool leaves_only = false;
  uint64_t offset = 0, limit = 200;
};

struct SearchHits {
  uint64_t total = 0;
  std::vector<NodeSummary> hits;
};

/// The next or previous node that a filter keeps, and which of them it is.
struct SeekHit {
  std::optional<NodeSummary> node;
  uint64_t index = 0, total = 0;
};

/// A layer and the names of the nodes to look at.
struct LayerSummary {
  LayerColumn column;
  std::string forward_node, backward_node;
};

/// The other end of an edge of the flow of values.
struct FlowNeighbour {
  NodeSummary node;
  std::vector<std::string> path;   ///< its ancestors, without the root: one of them is drawn where the node is not
  uint16_t input = 0, output = 0;  ///< positions: of the taker's inputs, of the giver's outputs
  int confidence = 0;              ///< in percent
};

struct LinkDetail {
  std::optional<NodeSummary> previous, next;
  bool flow_known = false;
  std::vector<FlowNeighbour> producers, consumers;
  uint64_t producers_total = 0, consumers_total = 0;
  std::vector<ExchangePartner> partners;
  std::optional<NodePrecision> precision;
};

/// A change of the matches of a graph; what each needs is in MatchRequest.
enum class MatchAction : uint8_t {
  kAdd,     ///< npu, bench, descendants: nodes below them by name as well
  kRemove,  ///< npu, descendants
  kApply,   ///< config: the pairs of a configuration file
  kSave     ///< writes the pairs made by hand to a configuration file
};

/// Why a pair is not matched, or a match not cancelled.
enum class MatchRefusal : uint8_t { kNone, kSingle, kTensor, kTaken, kTypes, kAbsent, kNotMatched, kStale, kNothing };
std::string_view RefusalName(MatchRefusal refusal);  // "taken"

struct MatchState {
  MatchRefusal refusal = MatchRefusal::kNone;  ///< why nothing can be matched in this file
  std::string revision, problem;
  std::vector<std::pair<std::string, std::string>> made;
  std::vector<std::string> cancelled, configs;
};

struct SkippedMatch {
  std::string npu, bench;
  MatchRefusal refusal = MatchRefusal::kNone;
};

struct MatchChange {
  MatchRefusal refusal = MatchRefusal::kNone;  ///< of the change as a whole; nothing was changed then
  std::string text;                            ///< one line that says so
  uint64_t changed = 0;                        ///< pairs made or cancelled
  uint64_t skipped_total = 0;
  std::vector<SkippedMatch> skipped;  ///< of a configuration file, at most kMostSkipped
  std::string config;                 ///< name of the file written
  static constexpr size_t kMostSkipped = 100;
};

/// What an exported page holds. Empty lists: all.
struct ExportChoice {
  std::vector<int64_t> steps, ranks;
  uint64_t details_bytes = 0;  ///< for the figures of nodes; the graphs themselves are always whole
  uint64_t tensor_bytes = 0;   ///< for previews of tensors
};

struct ExportedGraphs {
  std::string json;
  uint64_t graphs = 0, nodes = 0, details = 0;  ///< nodes of both sides, those whose figures are there
  ExportedTensors tensors;
};

/// Whose values are asked for.
struct TensorQuery {
  std::string node, item;
  std::string partner_item;  ///< of the matched node, "" for none
  int64_t slice = 0;
};
struct TensorDetail;

class Viewer {
 public:
  static constexpr size_t kCacheBytes = size_t{512} << 20;
  /// `path` is a directory or one .vis.db file. `cache_bytes` bounds what graphs kept in memory may take; the graph in
  /// use is kept in any case.
  static StatusOr<std::unique_ptr<Viewer>> Open(const std::string& path, size_t cache_bytes = kCacheBytes);
  /// The same for who may read everything: matches by hand are compared wherever their dumps lie.
  static StatusOr<std::unique_ptr<Viewer>> OpenTrusted(const std::string& path);
  ~Viewer();
  /// The real path of the directory; "" when one file is shown, beside which nothing else is looked at.
  std::string root() const { return directory_.single() ? std::string() : directory_.real(); }

  /// Reads what a page asks first, where there is only one graph file that it can ask for.
  Status ReadAhead();
  StatusOr<FileList> Files();
  StatusOr<VisConfig> Config(std::string_view file);
  StatusOr<GraphSummary> Summary(const GraphKey& key);
  /// An empty name is the root. At most `limit` children from `offset`.
  StatusOr<ChildList> Children(const GraphKey& key, Side side, std::string_view name, uint64_t offset, uint64_t limit);
  /// Ancestors, root first, the node itself last.
  StatusOr<std::vector<std::string>> Path(const GraphKey& key, Side side, std::string_view name);
  StatusOr<NodeDetail> Node(const GraphKey& key, Side side, std::string_view name);
  StatusOr<SearchHits> Search(const GraphKey& key, Side side, const SearchQuery& query);
  /// The node after (or before) `from` that the query keeps; behind the last comes the first. An empty `from` stands
  /// before the first. `offset` and `limit` mean nothing here.
  StatusOr<SeekHit> Seek(const GraphKey& key, Side side, const SearchQuery& query, std::string_view from, bool forward);
  StatusOr<std::vector<OverviewCell>> Matrix(std::string_view file);
  StatusOr<Findings> FindingsOf(const GraphKey& key);
  StatusOr<std::vector<LayerSummary>> Layers(const GraphKey& key);
  /// Everything the page asks, as one text for a page that has no server; web/src/api/exported.ts reads it.
  StatusOr<ExportedGraphs> Export(std::string_view file, const ExportChoice& choice);
  StatusOr<std::shared_ptr<TrendFile>> Trend(std::string_view file);
  StatusOr<MatchState> Matches(const GraphKey& key);
  /// Writes beside the file; the file itself stays as it is.
  StatusOr<MatchChange> ChangeMatches(const GraphKey& key, MatchAction action, const MatchRequest& request);
  StatusOr<LinkDetail> Links(const GraphKey& key, Side side, std::string_view name);
  /// From the files of a tensor dump, where they lie below the directory; view/tensor_view.h has the answer.
  StatusOr<TensorDetail> Tensor(const GraphKey& key, Side side, const TensorQuery& query);

 private:
  struct Cache;
  Viewer(GraphDirectory directory, size_t cache_bytes, std::string tensors);
  GraphDirectory directory_;
  std::unique_ptr<Cache> cache_;
};

}  // namespace msprobe::view
