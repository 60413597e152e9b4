#include "view/run/rank_series.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdlib>

#include "base/file.h"
#include "base/message.h"

namespace msprobe::view {
namespace {

constexpr size_t kSlice = size_t{16} << 20;  // bytes between two looks at the clock
constexpr size_t kSettled = 200;             // records after which the interval is known
constexpr int64_t kFarthestStep = int64_t{1} << 40, kLongestInterval = 1 << 20;
constexpr size_t kNoColumn = SIZE_MAX;

}  // namespace

StatusOr<std::unique_ptr<RankSeries>> RankSeries::Open(const std::vector<std::string>& directories) {
  auto series = std::make_unique<RankSeries>();
  for (const std::string& directory : directories) {
    std::string path = JoinPath(directory, "monitor.series");
    if (IsRegularFile(path)) {
      MSP_RETURN_IF_ERROR(series->Add(path));
      continue;
    }
    MSP_ASSIGN_OR_RETURN(auto file, SeriesOfCsv(directory, &series->cut_rows_));
    if (file) series->sources_.push_back({*std::move(file), true, 0, {}, {}, {}, {}});
  }
  if (series->sources_.empty()) {
    return BadInput(Msg("{} holds neither monitor.series nor csv files of a monitor: choose another rank",
                        directories.empty() ? std::string() : directories.back()));
  }
  return series;
}

StatusOr<std::unique_ptr<RankSeries>> RankSeries::OpenFile(const std::string& path) {
  auto series = std::make_unique<RankSeries>();
  MSP_RETURN_IF_ERROR(series->Add(path));
  return series;
}

Status RankSeries::Add(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(SeriesFile file, SeriesFile::Open(path, 0));
  sources_.push_back({std::move(file), false, 0, {}, {}, {}, {}});
  return OkStatus();
}

Status RankSeries::Follow(Deadline until) {
  behind_ = false;
  for (uint32_t at = 0; at < sources_.size(); ++at) {
    for (bool more = true; more;) {
      more = false;
      if (!sources_[at].fixed) {
        MSP_ASSIGN_OR_RETURN(more, sources_[at].file.Follow(kSlice));
      }
      TakeNames(&sources_[at]);
      TakeBlocks(at);
      if (more && std::chrono::steady_clock::now() > until) {
        behind_ = true;
        return OkStatus();
      }
    }
  }
  return OkStatus();
}

void RankSeries::TakeNames(Source* source) {
  const SeriesFile& file = source->file;
  for (size_t t = source->metric_of.size(); t < file.tables().size(); ++t) {
    const SeriesFile::Table& table = file.tables()[t];
    const auto [known, fresh] = metric_ids_.emplace(table.name, metrics_.size());
    if (fresh) {
      metrics_.push_back({table.name, {}, {}});
      records_.emplace_back();
    }
    std::vector<std::string>& stats = metrics_[known->second].stats;
    for (const std::string& column : table.columns) {
      if (std::find(stats.begin(), stats.end(), column) == stats.end()) stats.push_back(column);
    }
    source->metric_of.push_back(known->second);
  }
  // A table of another session may have brought statistics.
  source->columns.resize(file.tables().size());
  for (size_t t = 0; t < file.tables().size(); ++t) {
    const auto& stats = metrics_[source->metric_of[t]].stats;
    const auto& columns = file.tables()[t].columns;
    source->columns[t].assign(stats.size(), kNoColumn);
    for (size_t i = 0; i < stats.size(); ++i) {
      const auto found = std::find(columns.begin(), columns.end(), stats[i]);
      if (found != columns.end()) source->columns[t][i] = static_cast<size_t>(found - columns.begin());
    }
  }
  for (size_t s = source->rows.size(); s < file.series().size(); ++s) {
    const SeriesFile::Series& series = file.series()[s];
    const size_t metric = source->metric_of[series.table];
    auto& all = metrics_[metric].series;
    const auto [known, fresh] =
        series_ids_.emplace(fmt::format("{}\n{}\n{}\n{}", metric, series.vpp_stage, series.micro_step, series.name),
                            static_cast<uint32_t>(all.size()));
    if (fresh) all.push_back({series.name, series.vpp_stage, series.micro_step});
    source->rows.emplace_back(metric, known->second);
  }
}

void RankSeries::TakeBlocks(uint32_t at) {
  Source& source = sources_[at];
  for (; source.taken < source.file.blocks(); ++source.taken) {
    const SeriesFile::Values values = source.file.block(source.taken);
    const size_t metric = source.metric_of[values.table];
    if (std::abs(values.step) > kFarthestStep) continue;
    TakeStep(metric, values.step);
    records_[metric].push_back({values.step, at, static_cast<uint32_t>(source.taken)});
  }
}

void RankSeries::TakeStep(size_t metric, int64_t step) {
  if (last_step_ < 0 && steps_seen_ == 0) first_step_ = step;
  first_step_ = std::min(first_step_, step);
  last_step_ = std::max(last_step_, step);
  if (++steps_seen_ > kSettled || records_[metric].empty()) return;
  const int64_t gap = step - records_[metric].back().step;
  if (gap > 0 && (interval_ == 0 || gap < interval_)) interval_ = std::min(gap, kLongestInterval);
}

RankSeries::Record RankSeries::At(size_t metric, size_t record, size_t stat) {
  const Place& place = records_[metric][record];
  Source& source = sources_[place.source];
  const SeriesFile::Values values = source.file.block(place.block);
  if (source.layouts.size() < source.file.layouts()) source.layouts.resize(source.file.layouts());
  Layout& layout = source.layouts[values.layout];
  if (!layout.made) {
    layout.made = true;
    layout.metric = values.series.empty() ? metric : source.rows[values.series.front()].first;
    for (const size_t series : values.series) {
      const auto [of, row] = source.rows[series];
      if (of != layout.metric) layout.metric = SIZE_MAX;  // no writer of ours
      if (layout.place.size() <= row) layout.place.resize(row + 1, kNoPlace);
      layout.place[row] = static_cast<uint32_t>(layout.rows.size());
      layout.rows.push_back(row);
    }
  }
  if (layout.metric != metric) return {values.step, {}, {}, nullptr};
  const auto& columns = source.columns[values.table];
  const size_t column = stat < columns.size() ? columns[stat] : kNoColumn;
  return {values.step, layout.rows, layout.place,
          column == kNoColumn ? nullptr : values.values + column * values.series.size()};
}

}  // namespace msprobe::view
