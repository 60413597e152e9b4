// A trend file as one text, for a page without a server; web/src/api/exported_trends.ts reads it.
#include <fmt/core.h>

#include <algorithm>
#include <span>

#include "base/message.h"
#include "json/writer.h"
#include "view/trend/trend_cells.h"
#include "view/trend/trend_file.h"
#include "view/trend/trend_json.h"

namespace msprobe::view {

namespace {

constexpr uint64_t kMostExported = 40'000'000;  // 320 MB while they are collected, far more than a page may take

std::vector<int64_t> Kept(const std::vector<int64_t>& all, const std::vector<int64_t>& wanted) {
  if (wanted.empty()) return all;
  std::vector<int64_t> out;
  std::copy_if(all.begin(), all.end(), std::back_inserter(out),
               [&](int64_t v) { return std::find(wanted.begin(), wanted.end(), v) != wanted.end(); });
  return out;
}

// npos where it is not.
size_t IndexOf(const std::vector<int64_t>& sorted, int64_t value) {
  const auto at = std::lower_bound(sorted.begin(), sorted.end(), value);
  return at == sorted.end() || *at != value ? std::string::npos : static_cast<size_t>(at - sorted.begin());
}

void WriteValues(JsonWriter* json, std::span<const double> values) {
  const bool none = std::all_of(values.begin(), values.end(), [](double v) { return v == kNoTrendCell; });
  none ? json->Null() : json->Array(values, [&](double value) { WriteCell(json, value); });
}

}  // namespace

StatusOr<ExportedTrend> TrendFile::Export(const std::vector<int64_t>& steps, const std::vector<int64_t>& ranks) {
  const std::lock_guard lock(mutex_);
  TrendInfo info = info_;
  info.steps = Kept(info_.steps, steps);
  info.ranks = Kept(info_.ranks, ranks);
  if (info.steps.empty() || info.ranks.empty()) {
    return BadInput(Msg("{} has no values of the chosen steps and ranks", shown_));
  }
  const size_t columns = info.steps.size();
  uint64_t cells = 0;
  std::vector<std::vector<double>> values;  // of a metric: by statistic, rank, target and step
  for (const TrendMetric& metric : info.metrics) {
    cells += metric.stats.size() * info.ranks.size() * of_metric_.at(metric.id).size() * columns;
    if (cells > kMostExported) {
      return BadInput(
          Msg("{} has more than {} values, too many for a page without a server: choose fewer with --step and --rank, "
              "or use msprobe serve",
              shown_, kMostExported));
    }
  }
  for (const TrendMetric& metric : info.metrics) {
    values.emplace_back(metric.stats.size() * info.ranks.size() * of_metric_.at(metric.id).size() * columns,
                        kNoTrendCell);
  }
  MSP_RETURN_IF_ERROR(Collect(info, &values));
  ExportedTrend out;
  JsonWriter json(&out.json, kTrendStyle);
  json.BeginObject();
  json.RawMember("info", ToJson(info));
  size_t at = 0;
  json.ArrayMember("metrics", info.metrics, [&](const TrendMetric& metric) {
    WriteMetric(&json, metric, values[at], info.ranks.size(), columns);
    out.targets = std::max<uint64_t>(out.targets, of_metric_.at(metric.id).size());
    values[at++] = {};
  });
  json.EndObject();
  return out;
}

// One walk over the table.
Status TrendFile::Collect(const TrendInfo& info, std::vector<std::vector<double>>* values) {
  std::string sql = "SELECT t.rank, t.step, t.target_id, t.metric_id";
  for (const std::string& stat : columns_) sql += ", " + ValueColumns(stat);
  MSP_ASSIGN_OR_RETURN(SqliteStatement rows, db_.Prepare(sql + " FROM trend_data t"));
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) return OkStatus();
    const size_t rank = IndexOf(info.ranks, rows.Int(0)), step = IndexOf(info.steps, rows.Int(1));
    const auto metric = std::find_if(info.metrics.begin(), info.metrics.end(),
                                     [&](const TrendMetric& m) { return m.id == rows.Int(3); });
    if (rank == std::string::npos || step == std::string::npos || metric == info.metrics.end()) continue;
    const std::vector<int64_t>& targets = of_metric_.at(metric->id);
    const size_t target = IndexOf(targets, rows.Int(2));
    if (target == std::string::npos) continue;
    std::vector<double>& into = (*values)[static_cast<size_t>(metric - info.metrics.begin())];
    for (size_t s = 0; s < metric->stats.size(); ++s) {
      const size_t column = StatColumn(columns_, metric->stats[s]);
      into[((s * info.ranks.size() + rank) * targets.size() + target) * info.steps.size() + step] =
          TrendCell(rows, static_cast<int>(column) * 2 + 4, column);
    }
  }
}

// {"targets": [[id, name, vpp stage, micro step], ...], "tags": [[which targets], ...], "values": [of a statistic: [of
// a rank: targets by steps, or null]]}
void TrendFile::WriteMetric(JsonWriter* json, const TrendMetric& metric, const std::vector<double>& values,
                            size_t ranks, size_t columns) const {
  const std::vector<int64_t>& targets = of_metric_.at(metric.id);
  json->BeginObject();
  json->ArrayMember("targets", targets, [&](int64_t id) {
    const TrendTargetName target = NameOf(id);
    json->BeginArray();
    json->Value(id);
    json->Value(target.name);
    json->Value(target.vpp_stage);
    json->Value(target.micro_step);
    json->EndArray();
  });
  json->ArrayMember("tags", metric.tags, [&](const auto& tag) {
    std::vector<size_t> tagged;
    const auto ids = of_tag_.find(fmt::format("{}\n{}", metric.id, tag.first));
    if (ids != of_tag_.end()) {
      for (const int64_t id : ids->second) {
        if (const size_t i = IndexOf(targets, id); i != std::string::npos) tagged.push_back(i);
      }
    }
    json->Value(tagged);
  });
  const size_t block = targets.size() * columns;
  size_t begin = 0;
  json->ArrayMember("values", metric.stats, [&](const std::string&) {
    json->BeginArray();
    for (size_t rank = 0; rank < ranks; ++rank, begin += block) {
      WriteValues(json, std::span(values).subspan(begin, block));
    }
    json->EndArray();
  });
  json->EndObject();
}

}  // namespace msprobe::view
