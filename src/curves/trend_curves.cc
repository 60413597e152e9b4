// A .trend.db file: what a dump or a monitor recorded, step by step.
#include <fmt/format.h>
#include <sqlite3.h>

#include <cmath>
#include <memory>
#include <string>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "curves/table_curves.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

// The name of the loss: of an op that computes one, its output. {} of the query: what the user named.
constexpr const char* kLossTarget =
    "SELECT t.target_id, t.target_name FROM monitoring_targets t WHERE (?1 != '' AND t.target_name = ?1) OR (?1 = '' "
    "AND "
    "lower(t.target_name) LIKE '%output%' AND (lower(t.target_name) LIKE '%cross_entropy%' OR lower(t.target_name) "
    "LIKE "
    "'%loss%')) ORDER BY lower(t.target_name) LIKE 'module%' DESC, t.target_id LIMIT 1";
constexpr const char* kLossRows =
    "SELECT d.step, d.mean FROM trend_data d JOIN monitoring_metrics m ON m.metric_id = d.metric_id WHERE d.target_id "
    "= "
    "?1 AND d.rank = 0 AND d.mean IS NOT NULL AND m.metric_name IN ('forward', 'actv') ORDER BY d.step";
constexpr const char* kNormRows =
    "SELECT d.step, sum(d.norm * d.norm) FROM trend_data d JOIN monitoring_metrics m ON m.metric_id = d.metric_id "
    "WHERE "
    "d.rank = 0 AND d.norm IS NOT NULL AND m.metric_name IN ('parameters_grad', 'grad_reduced') GROUP BY d.step ORDER "
    "BY "
    "d.step";
constexpr int kMaxNameBytes = 1 << 20;
constexpr double kFloatUnit = InfoOf(DType::kFloat32).eps();  // statistics come from tensors of 32 bits and less

class TrendRows {
 public:
  static StatusOr<std::unique_ptr<TrendRows>> Open(const std::string& path) {
    if (!IsRegularFile(path)) return BadInput(Msg("{} does not exist: check the path", OneLine(path)));
    auto out = std::unique_ptr<TrendRows>(new TrendRows(path));
    if (sqlite3_open_v2(path.c_str(), &out->db_, SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX, nullptr) != SQLITE_OK) {
      return out->Unreadable();
    }
    sqlite3_limit(out->db_, SQLITE_LIMIT_LENGTH, kMaxNameBytes);
    sqlite3_db_config(out->db_, SQLITE_DBCONFIG_DEFENSIVE, 1, nullptr);
    sqlite3_db_config(out->db_, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, nullptr);
    return out;
  }
  ~TrendRows() { sqlite3_close_v2(db_); }

  template <typename Take>
  Status ForEach(const char* sql, const std::string* text, int64_t number, const Take& take) {
    sqlite3_stmt* raw = nullptr;
    if (sqlite3_prepare_v2(db_, sql, -1, &raw, nullptr) != SQLITE_OK) return Unreadable();
    const std::unique_ptr<sqlite3_stmt, decltype(&sqlite3_finalize)> statement(raw, sqlite3_finalize);
    if (text) {
      sqlite3_bind_text64(raw, 1, text->data(), text->size(), SQLITE_STATIC, SQLITE_UTF8);
    } else if (sqlite3_bind_parameter_count(raw) > 0) {
      sqlite3_bind_int64(raw, 1, number);
    }
    int code = SQLITE_ROW;
    while ((code = sqlite3_step(raw)) == SQLITE_ROW) MSP_RETURN_IF_ERROR(take(raw));
    return code == SQLITE_DONE ? OkStatus() : Unreadable();
  }

 private:
  explicit TrendRows(std::string path) : path_(std::move(path)) {}
  Status Unreadable() const {
    return BadInput(Msg("{} cannot be read as a .trend.db file ({}): write it again with msprobe data2db",
                        OneLine(path_), OneLine(db_ ? sqlite3_errmsg(db_) : "out of memory")));
  }
  std::string path_;
  sqlite3* db_ = nullptr;
};

}  // namespace

StatusOr<RunCurves> ReadTrendCurves(const std::string& path, const CurveNames& names) {
  MSP_ASSIGN_OR_RETURN(const std::unique_ptr<TrendRows> rows, TrendRows::Open(path));
  RunCurves out{path, "trend.db", {}, {}};
  CurveCollector points;
  int64_t target = -1;
  MSP_RETURN_IF_ERROR(rows->ForEach(kLossTarget, &names.loss, 0, [&](sqlite3_stmt* row) -> Status {
    target = sqlite3_column_int64(row, 0);
    const auto* name = reinterpret_cast<const char*>(sqlite3_column_text(row, 1));
    out.notes.push_back(Msg("the loss is the mean of {}", OneLine(name ? name : "")));
    return OkStatus();
  }));
  if (target >= 0) {
    MSP_RETURN_IF_ERROR(rows->ForEach(kLossRows, nullptr, target, [&](sqlite3_stmt* row) -> Status {
      const double value = sqlite3_column_double(row, 1);
      return points.Add(CurveKind::kLoss, sqlite3_column_int64(row, 0), value, std::fabs(value) * kFloatUnit);
    }));
  }
  MSP_RETURN_IF_ERROR(rows->ForEach(kNormRows, nullptr, 0, [&](sqlite3_stmt* row) -> Status {
    const double value = std::sqrt(sqlite3_column_double(row, 1));
    return points.Add(CurveKind::kGradNorm, sqlite3_column_int64(row, 0), value, value * kFloatUnit);
  }));
  if (points.count(CurveKind::kLoss) + points.count(CurveKind::kGradNorm) == 0) {
    return BadInput(
        Msg("{} holds neither a loss nor norms of gradients: name the op whose output is the loss with --loss",
            OneLine(path)));
  }
  points.Finish(&out);
  return out;
}

}  // namespace msprobe
