#include "trend/trend_db.h"

#include <fmt/format.h>
#include <sqlite3.h>

#include <array>
#include <cmath>

#include "base/interrupt.h"
#include "base/message.h"

namespace msprobe {
namespace {

constexpr double kLargest = 1e9;
constexpr int kProgressOps = 100000;  // virtual machine steps between two looks at the interrupt flag

constexpr char kTables[] =
    "CREATE TABLE monitoring_targets(target_id INTEGER PRIMARY KEY AUTOINCREMENT, target_name TEXT NOT NULL,"
    " vpp_stage INTEGER NOT NULL, micro_step INTEGER NOT NULL DEFAULT 0, UNIQUE(target_name, vpp_stage, micro_step));"
    "CREATE TABLE monitoring_metrics(metric_id INTEGER PRIMARY KEY AUTOINCREMENT, metric_name TEXT UNIQUE NOT NULL);"
    "CREATE TABLE monitoring_tags(tag_id INTEGER PRIMARY KEY AUTOINCREMENT, tag_name TEXT NOT NULL,"
    " category TEXT NOT NULL, metric_id INTEGER NOT NULL REFERENCES monitoring_metrics(metric_id),"
    " UNIQUE(tag_name, category, metric_id));"
    "CREATE TABLE tag_target_mapping(tag_id INTEGER NOT NULL REFERENCES monitoring_tags(tag_id),"
    " target_id INTEGER NOT NULL REFERENCES monitoring_targets(target_id), PRIMARY KEY(tag_id, target_id));"
    // The earlier tool's reader sees NULL for NaN as for what was not recorded. Which of them are the latter: bits of
    // the columns of statistics.
    "CREATE TABLE msprobe_absent(rank INTEGER NOT NULL, step INTEGER NOT NULL, target_id INTEGER NOT NULL,"
    " metric_id INTEGER NOT NULL, stats INTEGER NOT NULL, PRIMARY KEY(rank, step, target_id, metric_id)) WITHOUT "
    "ROWID;";

void BindText(sqlite3_stmt* s, int at, std::string_view text) {
  sqlite3_bind_text64(s, at, text.data() ? text.data() : "", text.size(), SQLITE_STATIC, SQLITE_UTF8);
}

}  // namespace

double TrendValue(double value) {
  if (std::isinf(value)) return value > 0 ? kLargest + 1 : -kLargest - 1;
  if (value > kLargest) return kLargest;
  return value < -kLargest ? -kLargest : value;
}

StatusOr<std::unique_ptr<TrendDb>> TrendDb::Create(const std::string& path, const std::vector<std::string>& stats) {
  std::unique_ptr<TrendDb> db(new TrendDb(path));
  MSP_RETURN_IF_ERROR(db->Open(stats));
  return db;
}

TrendDb::~TrendDb() { Close(); }

void TrendDb::Close() {
  for (sqlite3_stmt** s : {&target_, &metric_, &row_, &tag_, &tagged_, &absent_}) {
    sqlite3_finalize(*s);
    *s = nullptr;
  }
  sqlite3_close(db_);
  db_ = nullptr;
}

Status TrendDb::Error(const char* what) {
  const int code = db_ ? sqlite3_errcode(db_) : SQLITE_CANTOPEN;
  if (code == SQLITE_INTERRUPT || InterruptRequested()) return Interrupted();
  const Message why = KnownText(db_ ? sqlite3_errmsg(db_) : "out of memory");
  if (code == SQLITE_CANTOPEN || code == SQLITE_PERM || code == SQLITE_READONLY) {
    return BadInput(Msg("{} cannot be written ({}): choose another directory with --db", path(), why));
  }
  return InternalError(
      Msg("{} could not be written while {} ({}): free some space or choose another directory with --db", path(), what,
          why));
}

Status TrendDb::Exec(const std::string& sql) {
  return sqlite3_exec(db_, sql.c_str(), nullptr, nullptr, nullptr) == SQLITE_OK ? OkStatus() : Error("making tables");
}

Status TrendDb::Prepare(const std::string& sql, sqlite3_stmt** statement) {
  return sqlite3_prepare_v2(db_, sql.c_str(), -1, statement, nullptr) == SQLITE_OK ? OkStatus() : Error("preparing");
}

Status TrendDb::Step(sqlite3_stmt* statement) {
  const int rc = sqlite3_step(statement);
  Status status = rc == SQLITE_DONE ? OkStatus() : Error("adding rows");
  sqlite3_reset(statement);
  return status;
}

Status TrendDb::Open(const std::vector<std::string>& stats) {
  const int flags = SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX;
  if (sqlite3_open_v2(temp_.path().c_str(), &db_, flags, nullptr) != SQLITE_OK) return Error("opening it");
  sqlite3_progress_handler(
      db_, kProgressOps, [](void*) { return InterruptRequested() ? 1 : 0; }, nullptr);
  MSP_RETURN_IF_ERROR(Exec("PRAGMA journal_mode=OFF; PRAGMA synchronous=OFF; PRAGMA locking_mode=EXCLUSIVE;"));
  MSP_RETURN_IF_ERROR(Exec(kTables));
  stats_ = stats.size();
  std::string columns, places;
  for (const std::string& stat : stats) {
    columns += fmt::format(" \"{}\" REAL DEFAULT NULL,", stat);
    places += ",?";
  }
  MSP_RETURN_IF_ERROR(
      Exec(fmt::format("CREATE TABLE trend_data(rank INTEGER NOT NULL, step INTEGER NOT NULL,"
                       " target_id INTEGER NOT NULL REFERENCES monitoring_targets(target_id),"
                       " metric_id INTEGER NOT NULL REFERENCES monitoring_metrics(metric_id),"
                       "{} PRIMARY KEY(rank, step, target_id, metric_id)) WITHOUT ROWID",
                       columns)));
  MSP_RETURN_IF_ERROR(Exec("BEGIN"));
  MSP_RETURN_IF_ERROR(
      Prepare("INSERT INTO monitoring_targets(target_name, vpp_stage, micro_step) VALUES(?,?,?)", &target_));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO monitoring_metrics(metric_name) VALUES(?)", &metric_));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO monitoring_tags(tag_name, category, metric_id) VALUES(?,?,?)", &tag_));
  MSP_RETURN_IF_ERROR(Prepare("INSERT OR IGNORE INTO tag_target_mapping(tag_id, target_id) VALUES(?,?)", &tagged_));
  MSP_RETURN_IF_ERROR(Prepare("INSERT INTO msprobe_absent VALUES(?,?,?,?,?)", &absent_));
  return Prepare("INSERT OR IGNORE INTO trend_data VALUES(?,?,?,?" + places + ")", &row_);
}

StatusOr<int64_t> TrendDb::Metric(std::string_view name) {
  const auto [at, fresh] = metrics_.emplace(name, static_cast<int64_t>(metrics_.size()) + 1);
  if (fresh) {
    BindText(metric_, 1, name);
    MSP_RETURN_IF_ERROR(Step(metric_));
  }
  return at->second;
}

StatusOr<int64_t> TrendDb::Target(std::string_view name, int64_t vpp_stage, int64_t micro_step) {
  const auto [at, fresh] = targets_.emplace(fmt::format("{}\n{}\n{}", name, vpp_stage, micro_step),
                                            static_cast<int64_t>(targets_.size()) + 1);
  if (fresh) {
    BindText(target_, 1, name);
    sqlite3_bind_int64(target_, 2, vpp_stage);
    sqlite3_bind_int64(target_, 3, micro_step);
    MSP_RETURN_IF_ERROR(Step(target_));
  }
  return at->second;
}

Status TrendDb::Row(int64_t rank, int64_t step, int64_t target, int64_t metric, const double* values) {
  int64_t absent = 0;
  for (size_t i = 0; i < stats_; ++i) {
    const int at = static_cast<int>(i) + 5;
    if (values[i] == kNoTrendValue) {
      absent |= int64_t{1} << i;
      sqlite3_bind_null(row_, at);
    } else {
      sqlite3_bind_double(row_, at, values[i]);  // NaN is NULL
    }
  }
  const std::array<int64_t, 4> key{rank, step, target, metric};
  for (size_t i = 0; i < key.size(); ++i) {
    sqlite3_bind_int64(row_, static_cast<int>(i) + 1, key[i]);
    sqlite3_bind_int64(absent_, static_cast<int>(i) + 1, key[i]);
  }
  MSP_RETURN_IF_ERROR(Step(row_));
  const int added = sqlite3_changes(db_);
  rows_ += static_cast<uint64_t>(added);
  if (absent == 0 || added == 0) return OkStatus();
  sqlite3_bind_int64(absent_, 5, absent);
  return Step(absent_);
}

Status TrendDb::Tag(int64_t metric, int64_t target, const std::set<TrendTag>& tags) {
  for (const auto& [name, category] : tags) {
    const auto [at, fresh] =
        tags_.emplace(fmt::format("{}\n{}\n{}", name, category, metric), static_cast<int64_t>(tags_.size()) + 1);
    if (fresh) {
      BindText(tag_, 1, name);
      BindText(tag_, 2, category);
      sqlite3_bind_int64(tag_, 3, metric);
      MSP_RETURN_IF_ERROR(Step(tag_));
    }
    sqlite3_bind_int64(tagged_, 1, at->second);
    sqlite3_bind_int64(tagged_, 2, target);
    MSP_RETURN_IF_ERROR(Step(tagged_));
  }
  return OkStatus();
}

Status TrendDb::Commit(const TrendExtent& extent) {
  std::string columns, values;
  for (const auto& [metric, stats] : extent.metrics) {
    columns += fmt::format(", \"{}\" TEXT DEFAULT NULL", metric);
    values += fmt::format(", '{}'", fmt::join(stats, ","));
  }
  MSP_RETURN_IF_ERROR(
      Exec(fmt::format("CREATE TABLE global_stats(max_rank INTEGER DEFAULT 0, min_step INTEGER DEFAULT 0,"
                       " max_step INTEGER DEFAULT 0{})",
                       columns)));
  MSP_RETURN_IF_ERROR(Exec(fmt::format("INSERT INTO global_stats VALUES({}, {}, {}{})", extent.max_rank,
                                       extent.min_step, extent.max_step, values)));
  MSP_RETURN_IF_ERROR(Exec("COMMIT"));
  Close();
  return temp_.Commit();
}

}  // namespace msprobe
