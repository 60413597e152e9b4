// The series of one rank of a monitored run, from monitor.series or the csv files of the earlier tool, while they grow.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "monitor/series_reader.h"
#include "view/run/csv_series.h"

namespace msprobe::view {

struct RunSeries {
  std::string name;
  int64_t vpp_stage = 0, micro_step = -1;
};

struct RunMetric {
  std::string name;
  std::vector<std::string> stats;
  std::vector<RunSeries> series;  // rows
};

using Deadline = std::chrono::steady_clock::time_point;

class RankSeries {
 public:
  /// One step of a metric.
  struct Record {
    int64_t step;
    std::span<const uint32_t> rows;   // of the metric
    std::span<const uint32_t> place;  // row -> where its value is, kNoPlace for none
    const double* values;             // of the statistic that was asked for; nullptr when this session has none
  };
  static constexpr uint32_t kNoPlace = UINT32_MAX;

  /// Directories of one rank, the oldest first: a resumed run has several.
  static StatusOr<std::unique_ptr<RankSeries>> Open(const std::vector<std::string>& directories);
  /// Of one file alone.
  static StatusOr<std::unique_ptr<RankSeries>> OpenFile(const std::string& path);
  /// Takes what was written meanwhile, as far as it comes before `until`.
  Status Follow(Deadline until);
  /// There is more than what was taken.
  bool behind() const { return behind_; }

  const std::vector<RunMetric>& metrics() const { return metrics_; }
  size_t series_count() const { return series_ids_.size(); }
  size_t records(size_t metric) const { return records_[metric].size(); }
  int64_t StepAt(size_t metric, size_t record) const { return records_[metric][record].step; }
  Record At(size_t metric, size_t record, size_t stat);
  /// Steps between two records of the run; known after its first records.
  int64_t interval() const { return interval_ == 0 ? 1 : interval_; }
  int64_t first_step() const { return first_step_; }
  int64_t last_step() const { return last_step_; }
  const CutRows& cut_rows() const { return cut_rows_; }

 private:
  struct Layout {
    std::vector<uint32_t> rows, place;
    size_t metric = 0;  // of all its series
    bool made = false;
  };
  struct Source {
    SeriesFile file;
    bool fixed = false;                             // csv files, read once
    size_t taken = 0;                               // blocks
    std::vector<std::pair<size_t, uint32_t>> rows;  // series -> metric and row
    std::vector<std::vector<size_t>> columns;       // table -> column of each statistic of its metric
    std::vector<size_t> metric_of;                  // table -> metric
    std::vector<Layout> layouts;
  };
  struct Place {
    int64_t step;
    uint32_t source, block;
  };

  Status Add(const std::string& path);
  void TakeNames(Source* source);
  void TakeBlocks(uint32_t at);
  void TakeStep(size_t metric, int64_t step);

  std::deque<Source> sources_;
  std::vector<RunMetric> metrics_;
  std::vector<std::vector<Place>> records_;  // by metric
  std::unordered_map<std::string, size_t> metric_ids_;
  std::unordered_map<std::string, uint32_t> series_ids_;
  int64_t interval_ = 0, first_step_ = 0, last_step_ = -1;
  size_t steps_seen_ = 0;
  CutRows cut_rows_;
  bool behind_ = true;
};

}  // namespace msprobe::view
