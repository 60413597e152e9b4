// The `.trend.db` file: statistics of targets (a tensor of an op, a parameter) over steps and ranks, with the tables
// that the trend page of mindstudio-probe reads.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace msprobe {

/// A word by which targets are found, and its category: default, layer, index, module, function.
using TrendTag = std::pair<std::string, std::string>;

struct TrendExtent {
  int64_t max_rank = 0, min_step = 0, max_step = 0;
  /// Metric -> its statistics, in the order of columns.
  std::vector<std::pair<std::string, std::vector<std::string>>> metrics;
};

/// Written under a temporary name; Commit() puts it in place of what is there.
class TrendDb {
 public:
  /// `stats` are the columns of values.
  static StatusOr<std::unique_ptr<TrendDb>> Create(const std::string& path, const std::vector<std::string>& stats);
  ~TrendDb();

  StatusOr<int64_t> Metric(std::string_view name);
  /// Ids count from 1 in the order in which targets are first named.
  StatusOr<int64_t> Target(std::string_view name, int64_t vpp_stage, int64_t micro_step);
  /// NaN is NULL, and so is kNoTrendValue, which table msprobe_absent tells from it. Of rows with one key the first
  /// counts.
  Status Row(int64_t rank, int64_t step, int64_t target, int64_t metric, const double* values);
  Status Tag(int64_t metric, int64_t target, const std::set<TrendTag>& tags);
  Status Commit(const TrendExtent& extent);

  uint64_t rows() const { return rows_; }
  uint64_t targets() const { return targets_.size(); }
  const std::string& path() const { return temp_.final_path(); }

 private:
  explicit TrendDb(const std::string& path) : temp_(path) {}
  Status Open(const std::vector<std::string>& stats);
  Status Exec(const std::string& sql);
  Status Prepare(const std::string& sql, sqlite3_stmt** statement);
  Status Step(sqlite3_stmt* statement);
  Status Error(const char* what);
  void Close();

  TempPath temp_;
  sqlite3* db_ = nullptr;
  sqlite3_stmt *target_ = nullptr, *metric_ = nullptr, *row_ = nullptr, *tag_ = nullptr, *tagged_ = nullptr,
               *absent_ = nullptr;
  size_t stats_ = 0;
  uint64_t rows_ = 0;
  std::unordered_map<std::string, int64_t> targets_, metrics_, tags_;
};

/// Stands where a row has nothing for a statistic. What TrendValue() gives is never infinite.
inline constexpr double kNoTrendValue = std::numeric_limits<double>::infinity();

/// A statistic as the file holds it: beyond 1e9 it is 1e9, an infinity 1e9 + 1.
double TrendValue(double value);

}  // namespace msprobe
