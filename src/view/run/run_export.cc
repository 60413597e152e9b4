#include "view/run/run_export.h"

#include <algorithm>

#include "base/base64.h"
#include "base/file.h"
#include "json/writer.h"
#include "view/run/run_json.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostColumns = 512;

Deadline NoDeadline() { return std::chrono::steady_clock::now() + std::chrono::hours(24); }

void WriteCells(JsonWriter* json, std::string_view key, const RunTile& tile, CellView view) {
  std::vector<float> values;
  values.reserve(tile.cells.size());
  for (const BinCell& cell : tile.cells) values.push_back(CellValue(cell, view));
  json->Member(key, Base64({reinterpret_cast<const char*>(values.data()), values.size() * sizeof(float)}));
}

Status WriteRank(JsonWriter* json, int64_t number, OpenRank* rank, size_t columns, ExportedRun* out) {
  MSP_ASSIGN_OR_RETURN(const RunInfo info, rank->Info(NoDeadline()));
  RunTileQuery query;
  query.rows.fold = RunFold::kNone;
  while ((info.last_step - info.first_step) / (info.interval << query.level) >= static_cast<int64_t>(columns)) {
    ++query.level;
  }
  const int64_t width = info.interval << query.level;
  query.from = FloorDiv(info.first_step, width);
  query.bins = static_cast<size_t>(FloorDiv(info.last_step, width) - query.from + 1);
  query.limit = SIZE_MAX;
  out->steps_of_column = std::max(out->steps_of_column, width);
  json->BeginObject();
  json->Member("rank", number);
  json->Member("width", width);
  json->Member("first_step", info.first_step);
  json->Member("cut_rows", info.cut_rows.count);
  json->Member("cut_file", BaseName(info.cut_rows.file));
  json->Member("last_step", info.last_step);
  json->Key("metrics");
  json->BeginArray();
  uint64_t series = 0;
  for (const RunMetric& metric : info.metrics) {
    if (metric.stats.empty()) continue;
    const bool norm = std::find(metric.stats.begin(), metric.stats.end(), "norm") != metric.stats.end();
    query.rows.metric = metric.name;
    query.rows.stat = norm ? "norm" : metric.stats.front();
    MSP_ASSIGN_OR_RETURN(const RunTile tile, rank->Tile(query, NoDeadline()));
    series += tile.rows.size();
    json->Object([&] {
      json->Member("metric", metric.name);
      json->Member("stat", query.rows.stat);
      json->Member("from", query.from);
      json->Member("bins", tile.bins);
      json->ArrayMember("labels", tile.rows, [&](const RunRow& row) { json->String(row.label); });
      WriteCells(json, "mean", tile, CellView::kMean);
      if (query.level > 0) {
        WriteCells(json, "lowest", tile, CellView::kLowest);
        WriteCells(json, "highest", tile, CellView::kHighest);
      }
    });
  }
  json->EndArray();
  json->EndObject();
  out->series = std::max(out->series, series);
  return OkStatus();
}

}  // namespace

StatusOr<ExportedRun> ExportRun(const std::vector<std::pair<int64_t, std::shared_ptr<OpenRank>>>& ranks,
                                const std::vector<RunEvent>& events, int64_t changed, size_t most_cells) {
  size_t series = 1;
  for (const auto& [number, rank] : ranks) {
    MSP_ASSIGN_OR_RETURN(const RunInfo info, rank->Info(NoDeadline()));
    for (const size_t count : info.series) series += count;
  }
  const size_t columns = std::clamp<size_t>(std::min(most_cells, OpenRank::kMostTileCells) / series, 1, kMostColumns);
  ExportedRun out;
  JsonWriter json(&out.json, kJsonPage);
  json.BeginObject();
  json.Member("changed", changed);
  json.RawMember("events", ToJson(RunFindings{events, false}));
  json.Key("ranks");
  json.BeginArray();
  for (const auto& [number, rank] : ranks) MSP_RETURN_IF_ERROR(WriteRank(&json, number, rank.get(), columns, &out));
  json.EndArray();
  json.EndObject();
  return out;
}

}  // namespace msprobe::view
