// A .trend.db file, open for queries: statistics of targets over steps and ranks. Ours and mindstudio-probe's.
#pragma once

#include <array>
#include <cstdint>
#include <limits>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/status.h"
#include "view/file/sqlite_db.h"
#include "view/trend/trend_cells.h"

namespace msprobe {
class JsonWriter;
}

namespace msprobe::view {

struct TrendMetric {
  int64_t id = 0;
  std::string name;
  std::vector<std::string> stats;
  /// Words by which targets are chosen, with their categories.
  std::vector<std::pair<std::string, std::string>> tags;
};

struct TrendInfo {
  std::vector<TrendMetric> metrics;
  std::vector<int64_t> ranks, steps;  // those that have rows
};

struct TrendTargetName {
  int64_t id = 0, vpp_stage = 0, micro_step = 0;
  std::string name;
};

/// What is fixed; the other two span the map, and a line follows the fixed one.
enum class TrendDimension : uint8_t { kStep, kRank, kTarget };

struct TrendQuery {
  std::string metric, stat;
  TrendDimension dimension = TrendDimension::kStep;
  int64_t value = 0;              // step, rank or id of the target
  std::vector<std::string> tags;  // a target has all of them
  std::string text;               // and its name holds this, in either case
  bool outliers_first = false;    // rows by OutlierScores(); otherwise by ids or ranks
  uint64_t offset = 0, limit = 200;
};

struct TrendGrid {
  std::vector<int64_t> columns;       // ranks (of a step), steps otherwise
  std::vector<TrendTargetName> rows;  // targets; of a target, none
  std::vector<int64_t> ranks;         // the rows of a target
  uint64_t total = 0;                 // rows without `offset` and `limit`
  std::vector<double> values;         // row by row; kNoTrendCell where there is none
};

struct TrendPoint {
  int64_t at = 0;  // a step or a rank
  double value = 0;
};

/// Values of one metric and statistic along steps (of a rank and a target) or ranks (of a step and a target).
struct TrendLineQuery {
  std::string metric, stat, name;
  int64_t vpp_stage = 0, micro_step = 0;
  std::optional<int64_t> rank, step;  // one of them is given
};

/// What an exported page holds of a trend file.
struct ExportedTrend {
  std::string json;
  uint64_t targets = 0;  ///< of the metric that has most
};

/// Thread-safe.
class TrendFile {
 public:
  /// kBadInput when the tables are not those of a trend file. `shown` is how errors name it.
  static StatusOr<std::shared_ptr<TrendFile>> Open(const std::string& path, std::string_view shown);
  const TrendInfo& info() const { return info_; }
  StatusOr<TrendGrid> Grid(const TrendQuery& query);
  StatusOr<std::vector<TrendPoint>> Line(const TrendLineQuery& query);
  /// Everything that the page asks. Empty lists: all steps, all ranks.
  StatusOr<ExportedTrend> Export(const std::vector<int64_t>& steps, const std::vector<int64_t>& ranks);

 private:
  struct Target {
    uint64_t name = 0;  // where its text begins in names_
    uint32_t length = 0;
    int64_t vpp_stage = 0, micro_step = 0;
  };
  struct Cells {
    std::string stat;
    int64_t metric = 0, rank = 0, step = 0;
  };
  TrendFile(SqliteDb db, std::string_view shown) : db_(std::move(db)), shown_(shown) {}
  Status Load();
  StatusOr<bool> HasTables(const char* names, int64_t count);
  StatusOr<bool> HasKey(const char* table);
  Status LoadMetrics();
  Status LoadStats();
  Status LoadTargets();
  Status LoadTags();
  Status LoadExtent();
  StatusOr<const TrendMetric*> FindMetric(std::string_view metric, std::string_view stat) const;
  StatusOr<std::vector<int64_t>> Chosen(const TrendQuery& query, int64_t metric) const;
  std::string ValueColumns(std::string_view stat) const;
  StatusOr<SqliteStatement*> Values(const std::string& stat);
  /// Calls take(target, value) for the targets from `first` to `last`.
  template <typename Take>
  Status Walk(const Cells& cells, int64_t first, int64_t last, const Take& take);
  Status FillColumn(const Cells& cells, const std::vector<int64_t>& targets, size_t column, TrendGrid* grid);
  Status FillTargets(const TrendQuery& query, int64_t metric, const std::vector<int64_t>& targets, TrendGrid* grid);
  Status CheckSortable(uint64_t rows, uint64_t columns) const;
  StatusOr<TrendGrid> TargetGrid(const TrendQuery& query, int64_t metric, uint64_t limit, TrendGrid grid);
  TrendTargetName NameOf(int64_t id) const;
  Status Collect(const TrendInfo& info, std::vector<std::vector<double>>* values);
  void WriteMetric(JsonWriter* json, const TrendMetric& metric, const std::vector<double>& values, size_t ranks,
                   size_t columns) const;

  std::mutex mutex_;  // of the connection
  SqliteDb db_;
  std::string shown_;
  TrendInfo info_;
  std::vector<std::string> columns_;  // statistics that trend_data has
  bool marks_absent_ = false;         // NULL is NaN but where msprobe_absent says that it is not
  std::string names_;
  std::unordered_map<int64_t, Target> targets_;
  std::unordered_map<int64_t, std::vector<int64_t>> of_metric_;   // metric -> its targets, sorted
  std::unordered_map<std::string, std::vector<int64_t>> of_tag_;  // "metric\ntag" -> its targets, sorted
  std::unordered_map<std::string, SqliteStatement> statements_;
};

}  // namespace msprobe::view
