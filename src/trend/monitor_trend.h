// monitor_data.trend.db: what a training monitor wrote as csv (activations, gradients, parameters, optimizer state).
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "base/status.h"
#include "monitor/series_reader.h"
#include "trend/dump_trend.h"

namespace msprobe {

/// A csv file of one rank: `metric` is grad_reduced in grad_reduced_0-9.csv; or some blocks of its monitor.series.
struct MonitorFile {
  std::string path, metric;
  int64_t rank = 0;
  std::shared_ptr<const SeriesFile> series;  // null for a csv file
  size_t table = 0, first = 0, end = 0;      // blocks of this table
};

/// monitor.series, or else the csv files, in the directories "Dec03_21-34-40-rank0-1a2b3c4d" below `directory`; of one
/// rank, the newest directory first. Empty when there are none.
StatusOr<std::vector<MonitorFile>> FindMonitorFiles(const std::string& directory);

/// Rows that are not understood are left out with a warning; kBadInput when nothing is left.
StatusOr<TrendReport> WriteMonitorTrend(const std::vector<MonitorFile>& files, const TrendSettings& settings);

}  // namespace msprobe
