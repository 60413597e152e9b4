// Answers the questions that the page asks. Thread-safe.
// Errors: kUsage for a parameter that makes no sense, kBadInput for what is not there, kInternal for the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "monitor/run_status.h"
#include "view/file/directory.h"
#include "view/file/match_edits.h"
#include "view/file/vis_file.h"
#include "view/query/answers.h"
#include "view/query/match_answers.h"
#include "view/run/run_cache.h"
#include "view/run/run_findings.h"
#include "view/trend/trend_file.h"

namespace msprobe::view {

struct QueryCaches;
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
  /// The real path of a table of acc_check. kUsage for a name that points outside, kBadInput when there is none.
  StatusOr<std::string> CheckTable(std::string_view file) const;
  /// The real path of the page of a report.
  StatusOr<std::string> Report(std::string_view file) const;
  StatusOr<VisSettings> Config(std::string_view file);
  StatusOr<GraphCounts> Summary(const GraphAddress& key);
  /// An empty name is the root. At most `limit` children from `offset`.
  StatusOr<ChildList> Children(const GraphAddress& key, Side side, std::string_view name, uint64_t offset,
                               uint64_t limit);
  /// Ancestors, root first, the node itself last.
  StatusOr<std::vector<std::string>> Path(const GraphAddress& key, Side side, std::string_view name);
  StatusOr<NodeDetail> Node(const GraphAddress& key, Side side, std::string_view name);
  /// In the graph of another rank where the search names one.
  StatusOr<SearchHits> Search(const GraphAddress& shown, Side side, const SearchQuery& query);
  /// The node after (or before) `from` that the query keeps; behind the last comes the first. An empty `from` stands
  /// before the first, as does one of another rank than the search names. `offset` and `limit` mean nothing here.
  StatusOr<SeekHit> Seek(const GraphAddress& shown, Side side, const SearchQuery& query, std::string_view from,
                         bool forward);
  StatusOr<std::vector<OverviewCell>> Matrix(std::string_view file);
  /// JSON: what the tool says of the whole file, however it was matched by hand since.
  StatusOr<std::string> Verdict(std::string_view file);
  StatusOr<Findings> FindingsOf(const GraphAddress& key);
  StatusOr<std::vector<LayerSummary>> Layers(const GraphAddress& key);
  /// JSON: how large the values are, and which of them are odd; of the side looked at.
  StatusOr<std::string> ActivationsOf(const GraphAddress& key);
  /// Everything the page asks, as one text for a page that has no server; web/src/api/exported.ts reads it.
  StatusOr<ExportedGraphs> Export(std::string_view file, const ExportChoice& choice);
  StatusOr<std::shared_ptr<TrendFile>> Trend(std::string_view file);
  /// Of a monitored run: a directory that Files() names.
  StatusOr<std::vector<int64_t>> RunRanks(std::string_view run);
  StatusOr<std::shared_ptr<OpenRank>> RunRank(std::string_view run, int64_t rank);
  /// By the heartbeats of its ranks; nothing for a run without.
  std::optional<RunStatus> RunHealth(std::string_view run) const;
  /// When the files of a rank were written last, in seconds since 1970.
  StatusOr<int64_t> RunChanged(std::string_view run, int64_t rank);
  /// Waits so long for what is being judged for the first time.
  StatusOr<RunFindings> RunEvents(std::string_view run, std::chrono::milliseconds patience);
  StatusOr<MatchState> Matches(const GraphAddress& key);
  /// Writes beside the file; the file itself stays as it is.
  StatusOr<MatchChange> ChangeMatches(const GraphAddress& key, MatchAction action, const MatchRequest& request);
  /// The best three; none for a node that has a partner.
  StatusOr<PartnerSuggestions> SuggestPartners(const GraphAddress& key, Side side, std::string_view name);
  /// One node over all steps and ranks of the file. kBadInput when none of them has it.
  StatusOr<NodeHistory> History(std::string_view file, Side side, std::string_view name);
  StatusOr<LinkDetail> Links(const GraphAddress& key, Side side, std::string_view name);
  /// From the files of a tensor dump, where they lie below the directory; view/tensor_view.h has the answer.
  StatusOr<TensorDetail> Tensor(const GraphAddress& key, Side side, const TensorQuery& query);

 private:
  Viewer(GraphDirectory directory, size_t cache_bytes, std::string tensors);
  GraphDirectory directory_;
  std::unique_ptr<QueryCaches> cache_;
};

}  // namespace msprobe::view
