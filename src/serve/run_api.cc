#include "serve/run_api.h"

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "view/run/run_json.h"

namespace msprobe::serve {
namespace {

constexpr auto kPatience = std::chrono::milliseconds(400);  // then the answer is what is known so far
constexpr int64_t kMostLevel = 30, kMostBins = 4096, kMostRows = 4096;
constexpr int64_t kFarthestBin = int64_t{1} << 32;

view::Deadline Soon() { return std::chrono::steady_clock::now() + kPatience; }

StatusOr<int64_t> Bounded(const RequestTarget& t, const char* name, int64_t fallback, int64_t low, int64_t high) {
  MSP_ASSIGN_OR_RETURN(const int64_t value, t.Int(name, &fallback));
  if (value < low || value > high) {
    return UsageError(std::string(name) + " is out of range: give " + std::to_string(low) + " to " +
                      std::to_string(high));
  }
  return value;
}

StatusOr<std::shared_ptr<view::OpenRank>> RankOf(view::Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const int64_t rank, t.Int("rank"));
  return viewer->RunRank(t.Get("run"), rank);
}

StatusOr<view::RunRowsQuery> RowsQuery(const RequestTarget& t) {
  view::RunRowsQuery query;
  query.metric = t.Get("metric");
  query.stat = t.Get("stat");
  query.text = t.Get("q");
  const std::string_view fold = t.Get("fold"), cell = t.Get("cell");
  if (fold != "" && fold != "layer" && fold != "none") {
    return UsageError("fold is not known: give layer or none");
  }
  query.fold = fold == "none" ? view::RunFold::kNone : view::RunFold::kLayer;
  if (cell == "" || cell == "highest" || cell == "all") return query;
  if (cell != "lowest" && cell != "mean") return UsageError("cell is not known: give highest, lowest, mean or all");
  query.view = cell == "lowest" ? view::CellView::kLowest : view::CellView::kMean;
  return query;
}

std::vector<std::string> Lines(std::string_view text) {
  std::vector<std::string> lines;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    if (end > at) lines.emplace_back(text.substr(at, end - at));
    at = end + 1;
  }
  return lines;
}

}  // namespace

StatusOr<std::string> RunOverview(view::Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const auto ranks, viewer->RunRanks(t.Get("run")));
  const int64_t first = ranks.front();
  MSP_ASSIGN_OR_RETURN(const int64_t rank, t.Int("rank", &first));
  MSP_ASSIGN_OR_RETURN(const auto open, viewer->RunRank(t.Get("run"), rank));
  MSP_ASSIGN_OR_RETURN(const auto info, open->Info(Soon()));
  MSP_ASSIGN_OR_RETURN(const int64_t changed, viewer->RunChanged(t.Get("run"), rank));
  return view::RunJson(ranks, info, changed, viewer->RunHealth(t.Get("run")));
}

StatusOr<std::string> RunRows(view::Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const auto query, RowsQuery(t));
  MSP_ASSIGN_OR_RETURN(const auto open, RankOf(viewer, t));
  MSP_ASSIGN_OR_RETURN(const auto answer, open->Rows(query, Soon()));
  return view::ToJson(answer);
}

StatusOr<std::string> RunTile(view::Viewer* viewer, const RequestTarget& t) {
  view::RunTileQuery query;
  MSP_ASSIGN_OR_RETURN(query.rows, RowsQuery(t));
  MSP_ASSIGN_OR_RETURN(const int64_t level, Bounded(t, "level", 0, 0, kMostLevel));
  MSP_ASSIGN_OR_RETURN(query.from, Bounded(t, "from", 0, -kFarthestBin, kFarthestBin));
  MSP_ASSIGN_OR_RETURN(const int64_t bins, Bounded(t, "bins", 256, 1, kMostBins));
  MSP_ASSIGN_OR_RETURN(const int64_t offset, Bounded(t, "offset", 0, 0, kFarthestBin));
  MSP_ASSIGN_OR_RETURN(const int64_t limit, Bounded(t, "limit", 64, 1, kMostRows));
  query.level = static_cast<int>(level);
  query.bins = static_cast<size_t>(bins);
  query.offset = static_cast<size_t>(offset);
  query.limit = static_cast<size_t>(limit);
  query.labels = Lines(t.Get("labels"));
  if (query.labels.size() > static_cast<size_t>(kMostRows))
    return UsageError("labels are too many: give 4096 or fewer");
  if (t.Has("as")) {
    MSP_ASSIGN_OR_RETURN(const int64_t rank, t.Int("as_rank"));
    MSP_ASSIGN_OR_RETURN(const auto first, viewer->RunRank(t.Get("as"), rank));
    MSP_ASSIGN_OR_RETURN(query.labels, first->Labels(query, Soon()));
  }
  MSP_ASSIGN_OR_RETURN(const auto open, RankOf(viewer, t));
  MSP_ASSIGN_OR_RETURN(const auto tile, open->Tile(query, Soon()));
  return view::TileJson(tile, query.rows.view, t.Get("cell") == "all");
}

StatusOr<std::string> RunEvents(view::Viewer* viewer, const RequestTarget& t) {
  MSP_ASSIGN_OR_RETURN(const auto events, viewer->RunEvents(t.Get("run"), kPatience));
  return view::ToJson(events);
}

}  // namespace msprobe::serve
