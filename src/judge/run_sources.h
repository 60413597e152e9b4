// Which files of a monitor's output directory are one run: of each rank the newest, and those that it goes on from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "judge/series_feed.h"
#include "monitor/series_reader.h"

namespace msprobe {

/// One file of a rank.
struct RunSource {
  size_t rank = 0;
  std::string directory;
  SeriesFile file;
  SeriesFeed feed;
  int64_t until = INT64_MAX;  // from this step on, the run that was resumed counts
};

struct RunSources {
  std::vector<RunSource> sources;     // of a rank in the order of steps
  size_t resumed = 0;                 // of them go on from another
  std::vector<std::string> left_out;  // directories of earlier runs
  std::string command;                // that trains, where a heartbeat says it
};

/// A run that was resumed writes into a directory of its own: where its steps begin within those of the one before, or
/// right behind them, both are one run. kBadInput when there is no monitor.series in `directory` or in one of it.
StatusOr<RunSources> OpenRunSources(const std::string& directory);

/// A block of one of the sources.
struct RunPlace {
  int64_t step;
  size_t source, block;
};

/// Of all sources, in the order of steps.
std::vector<RunPlace> PlacesInOrder(const std::vector<RunSource>& sources);

}  // namespace msprobe
