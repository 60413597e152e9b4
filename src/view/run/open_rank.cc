#include "view/run/open_rank.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <unordered_map>

#include "base/message.h"

namespace msprobe::view {
namespace {

constexpr double kFarthest = 4e15;  // step
constexpr size_t kMostSummaries = 4;
constexpr size_t kClockEvery = 64;        // records
constexpr size_t kSampledBins = 256;      // of a row, for its median
constexpr size_t kMostSampled = 200'000;  // values for the scale of all

float MedianOf(std::vector<float>* values) {
  if (values->empty()) return kNoBinValue;
  const auto middle = values->begin() + static_cast<std::ptrdiff_t>(values->size() / 2);
  std::nth_element(values->begin(), middle, values->end());
  return *middle;
}

float Quantile(std::vector<float>* values, double share) {
  if (values->empty()) return kNoBinValue;
  const auto at = static_cast<std::ptrdiff_t>(share * static_cast<double>(values->size() - 1));
  std::nth_element(values->begin(), values->begin() + at, values->end());
  return (*values)[static_cast<size_t>(at)];
}

BinCell Together(const StepBins& bins, const RunRow& row, int64_t bin) {
  BinCell cell;
  for (const uint32_t member : row.members) cell.Merge(bins.At(member, bin));
  return cell;
}

std::vector<RunRow> ChosenRows(const RunMetric& metric, const RunTileQuery& query) {
  std::vector<RunRow> all = MakeRunRows(metric, query.rows.fold, query.rows.text);
  if (query.labels.empty()) {
    const size_t begin = std::min(query.offset, all.size()), count = std::min(query.limit, all.size() - begin);
    return {std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(begin)),
            std::make_move_iterator(all.begin() + static_cast<std::ptrdiff_t>(begin + count))};
  }
  std::unordered_map<std::string_view, size_t> places;
  for (size_t i = 0; i < all.size(); ++i) places.emplace(all[i].label, i);
  std::vector<RunRow> rows;
  for (const std::string& label : query.labels) {
    const auto found = places.find(label);
    rows.push_back(found == places.end() ? RunRow{label, {}} : all[found->second]);
  }
  return rows;
}

}  // namespace

StatusOr<std::shared_ptr<OpenRank>> OpenRank::Open(const std::vector<std::string>& directories) {
  MSP_ASSIGN_OR_RETURN(auto series, RankSeries::Open(directories));
  return std::make_shared<OpenRank>(std::move(series));
}

StatusOr<RunInfo> OpenRank::Info(Deadline until) {
  const std::lock_guard lock(mutex_);
  MSP_RETURN_IF_ERROR(series_->Follow(until));
  RunInfo info;
  for (size_t m = 0; m < series_->metrics().size(); ++m) {
    const RunMetric& metric = series_->metrics()[m];
    info.metrics.push_back({metric.name, metric.stats, {}});
    info.series.push_back(metric.series.size());
    info.version += series_->records(m);
  }
  info.first_step = series_->first_step();
  info.last_step = series_->last_step();
  info.interval = series_->interval();
  info.behind = series_->behind();
  info.cut_rows = series_->cut_rows();
  return info;
}

StatusOr<std::pair<size_t, size_t>> OpenRank::Find(const RunRowsQuery& query) const {
  for (size_t m = 0; m < series_->metrics().size(); ++m) {
    const RunMetric& metric = series_->metrics()[m];
    if (metric.name != query.metric) continue;
    const auto stat = std::find(metric.stats.begin(), metric.stats.end(), query.stat);
    if (stat != metric.stats.end()) return std::pair(m, static_cast<size_t>(stat - metric.stats.begin()));
  }
  return BadInput(Msg("the rank has no metric {} with {}: choose one that the run has", query.metric, query.stat));
}

OpenRank::Summary* OpenRank::Summarize(size_t metric, size_t stat, Deadline until) {
  auto found = std::find_if(summaries_.begin(), summaries_.end(),
                            [&](const Summary& s) { return s.metric == metric && s.stat == stat; });
  if (found == summaries_.end()) {
    summaries_.push_front({metric, stat, 0, StepBins(series_->interval())});
    summaries_.front().bins.Expect(series_->first_step(), series_->last_step(),
                                   series_->metrics()[metric].series.size());
    if (summaries_.size() > kMostSummaries) summaries_.pop_back();
  } else {
    summaries_.splice(summaries_.begin(), summaries_, found);
  }
  Summary& summary = summaries_.front();
  const size_t rows = series_->metrics()[metric].series.size();
  for (size_t now = 1; summary.taken < series_->records(metric); ++summary.taken, ++now) {
    if (now % kClockEvery == 0 && std::chrono::steady_clock::now() > until) break;  // some are taken in any case
    const RankSeries::Record record = series_->At(metric, summary.taken, stat);
    if (record.values != nullptr) summary.bins.Take(record.step, record.rows, record.values, rows);
  }
  return &summary;
}

StatusOr<RunRowsAnswer> OpenRank::Rows(const RunRowsQuery& query, Deadline until) {
  const std::lock_guard lock(mutex_);
  MSP_RETURN_IF_ERROR(series_->Follow(until));
  MSP_ASSIGN_OR_RETURN(const auto found, Find(query));
  const Summary* summary = Summarize(found.first, found.second, until);
  RunRowsAnswer answer;
  answer.rows = MakeRunRows(series_->metrics()[found.first], query.fold, query.text);
  const StepBins& bins = summary->bins;
  const auto every =
      std::max<int64_t>(1, (bins.bins() + static_cast<int64_t>(kSampledBins) - 1) / static_cast<int64_t>(kSampledBins));
  const size_t skip = answer.rows.size() * kSampledBins / kMostSampled + 1;
  std::vector<float> all, own, off;
  for (const RunRow& row : answer.rows) {
    own.clear();
    for (int64_t b = bins.first(); b < bins.first() + bins.bins(); ++b) {
      if ((b - bins.first()) % every != 0 && row.members.size() > 1) continue;
      const BinCell cell = Together(bins, row, b);
      answer.odd += (cell.nan | cell.up | cell.down) != 0 ? 1 : 0;
      const float value = CellValue(cell, query.view);
      if (!std::isfinite(value) || value == kNoBinValue || (b - bins.first()) % every != 0) continue;
      own.push_back(value);
      if (const float size = std::abs(value); size != 0 && (answer.least == kNoBinValue || size < answer.least)) {
        answer.least = size;
      }
    }
    for (size_t i = 0; i < own.size(); i += skip) all.push_back(own[i]);
    RunRowSize size;
    size.middle = MedianOf(&own);
    off.clear();
    for (const float value : own) off.push_back(std::abs(value - size.middle));
    if (!off.empty()) size.spread = MedianOf(&off);
    answer.sizes.push_back(size);
  }
  answer.low = Quantile(&all, 0.01);
  answer.high = Quantile(&all, 0.99);
  answer.behind = series_->behind() || summary->taken < series_->records(found.first);
  return answer;
}

StatusOr<std::vector<std::string>> OpenRank::Labels(const RunTileQuery& query, Deadline until) {
  const std::lock_guard lock(mutex_);
  MSP_RETURN_IF_ERROR(series_->Follow(until));
  MSP_ASSIGN_OR_RETURN(const auto found, Find(query.rows));
  std::vector<std::string> labels;
  for (RunRow& row : ChosenRows(series_->metrics()[found.first], query)) labels.push_back(std::move(row.label));
  return labels;
}

StatusOr<RunTile> OpenRank::Tile(const RunTileQuery& query, Deadline until) {
  const std::lock_guard lock(mutex_);
  MSP_RETURN_IF_ERROR(series_->Follow(until));
  MSP_ASSIGN_OR_RETURN(const auto found, Find(query.rows));
  const auto [metric, stat] = found;
  const double width = std::ldexp(static_cast<double>(series_->interval()), query.level);
  if (std::abs(static_cast<double>(query.from)) * width > kFarthest) {
    return UsageError(Msg("from is not an integer within the steps of a run: give a smaller one"));
  }
  RunTile tile;
  tile.rows = ChosenRows(series_->metrics()[metric], query);
  tile.bins = std::min(query.bins, kMostTileCells / std::max<size_t>(tile.rows.size(), 1));
  tile.cells.resize(tile.rows.size() * tile.bins);
  const Summary* summary = Summarize(metric, stat, until);
  if (query.level >= summary->bins.level()) {
    FromBins(query, summary->bins, &tile);
  } else {
    FromRecords(query, metric, stat, &tile);
  }
  tile.behind = series_->behind() || summary->taken < series_->records(metric);
  const int64_t end = (query.from + static_cast<int64_t>(tile.bins)) * (series_->interval() << query.level);
  tile.final = !tile.behind && end <= series_->last_step();
  return tile;
}

void OpenRank::FromBins(const RunTileQuery& query, const StepBins& bins, RunTile* tile) const {
  const int64_t ratio = int64_t{1} << (query.level - bins.level());
  const int64_t begin = std::max(query.from * ratio, bins.first());
  const int64_t end = std::min((query.from + static_cast<int64_t>(tile->bins)) * ratio, bins.first() + bins.bins());
  for (int64_t b = begin; b < end; ++b) {
    const auto at = static_cast<size_t>(FloorDiv(b, ratio) - query.from);
    for (size_t r = 0; r < tile->rows.size(); ++r) {
      tile->cells[r * tile->bins + at].Merge(Together(bins, tile->rows[r], b));
    }
  }
}

void OpenRank::FromRecords(const RunTileQuery& query, size_t metric, size_t stat, RunTile* tile) {
  const int64_t width = series_->interval() << query.level;
  const int64_t begin = query.from * width, end = (query.from + static_cast<int64_t>(tile->bins)) * width;
  for (size_t i = 0; i < series_->records(metric); ++i) {
    if (const int64_t step = series_->StepAt(metric, i); step < begin || step >= end) continue;
    const RankSeries::Record record = series_->At(metric, i, stat);
    if (record.values == nullptr) continue;
    const auto at = static_cast<size_t>((record.step - begin) / width);
    for (size_t r = 0; r < tile->rows.size(); ++r) {
      for (const uint32_t member : tile->rows[r].members) {
        if (member >= record.place.size() || record.place[member] == RankSeries::kNoPlace) continue;
        tile->cells[r * tile->bins + at].Take(record.values[record.place[member]]);
      }
    }
  }
}

size_t OpenRank::bytes() {
  const std::lock_guard lock(mutex_);
  size_t sum = 0;
  for (const Summary& summary : summaries_) sum += summary.bins.bytes();
  return sum;
}

}  // namespace msprobe::view
