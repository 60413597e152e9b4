// One rank of a monitored run, kept open for the next question. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "view/run/rank_series.h"
#include "view/run/run_rows.h"
#include "view/run/step_bins.h"

namespace msprobe::view {

struct RunInfo {
  std::vector<RunMetric> metrics;  // without series
  std::vector<size_t> series;      // of each
  int64_t first_step = 0, last_step = -1, interval = 1;
  bool behind = false;   // the files hold more than what was read so far
  uint64_t version = 0;  // another one: there are other values
  CutRows cut_rows;
};

struct RunRowsQuery {
  std::string metric, stat, text;
  RunFold fold = RunFold::kLayer;
  CellView view = CellView::kHighest;
};

/// Where the values of a row lie, for scales of colours.
struct RunRowSize {
  float middle = kNoBinValue, spread = 0;  // median, and the median distance from it
};

struct RunRowsAnswer {
  std::vector<RunRow> rows;
  std::vector<RunRowSize> sizes;
  float low = kNoBinValue, high = kNoBinValue;  // between which 98 % of all finite values lie
  float least = kNoBinValue;                    // magnitude above zero
  uint64_t odd = 0;                             // cells with NaN or an infinity
  bool behind = false;
};

struct RunTileQuery {
  RunRowsQuery rows;
  int level = 0;     // a bin is interval << level steps
  int64_t from = 0;  // first bin
  size_t bins = 256;
  size_t offset = 0, limit = 64;    // rows
  std::vector<std::string> labels;  // or these
};

struct RunTile {
  std::vector<RunRow> rows;
  size_t bins = 0;
  std::vector<BinCell> cells;  // row by row
  bool final = false;          // all of its steps are over
  bool behind = false;
};

class OpenRank {
 public:
  static constexpr size_t kMostTileCells = 1 << 20;
  /// Directories of the rank, the oldest first.
  static StatusOr<std::shared_ptr<OpenRank>> Open(const std::vector<std::string>& directories);
  explicit OpenRank(std::unique_ptr<RankSeries> series) : series_(std::move(series)) {}
  StatusOr<RunInfo> Info(Deadline until);
  StatusOr<RunRowsAnswer> Rows(const RunRowsQuery& query, Deadline until);
  /// The labels of some rows.
  StatusOr<std::vector<std::string>> Labels(const RunTileQuery& query, Deadline until);
  StatusOr<RunTile> Tile(const RunTileQuery& query, Deadline until);
  size_t bytes();

 private:
  struct Summary {
    size_t metric, stat, taken;
    StepBins bins;
  };
  StatusOr<std::pair<size_t, size_t>> Find(const RunRowsQuery& query) const;
  Summary* Summarize(size_t metric, size_t stat, Deadline until);
  void FromBins(const RunTileQuery& query, const StepBins& bins, RunTile* tile) const;
  void FromRecords(const RunTileQuery& query, size_t metric, size_t stat, RunTile* tile);

  std::mutex mutex_;
  std::unique_ptr<RankSeries> series_;
  std::list<Summary> summaries_;  // the last used first
};

}  // namespace msprobe::view
