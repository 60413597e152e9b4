#include "view/file/file_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>

namespace msprobe::view {
namespace {

constexpr std::string_view kTableSql =
    "SELECT rootpage, sql FROM sqlite_master WHERE type = 'table' AND name = ?1 AND rootpage > 0";
constexpr std::string_view kColumnsSql = "SELECT cid, name FROM pragma_table_info(?1)";

// Where the table is, for reading it page by page.
struct TablePlace {
  bool there = false;
  uint32_t root = 0;  // 0: only SQLite can read it
  std::vector<int> columns;
};

StatusOr<TablePlace> FindTable(const SqliteDb& db, const RowQuery& query) {
  TablePlace place;
  MSP_ASSIGN_OR_RETURN(SqliteStatement table, db.Prepare(kTableSql));
  table.Bind(1, query.table);
  MSP_ASSIGN_OR_RETURN(place.there, table.Step());
  // Only where the first column is the id of the row, which is in no record.
  const std::string wanted = fmt::format("CREATE TABLE {} ({} INTEGER PRIMARY KEY,", query.table, query.key);
  if (!place.there || !table.Text(1).starts_with(wanted)) return place;
  place.columns.assign(query.columns.size(), -1);
  MSP_ASSIGN_OR_RETURN(SqliteStatement columns, db.Prepare(kColumnsSql));
  columns.Bind(1, query.table);
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, columns.Step());
    if (!more) break;
    const auto at = std::find(query.columns.begin(), query.columns.end(), columns.Text(1));
    if (at != query.columns.end()) {
      place.columns[static_cast<size_t>(at - query.columns.begin())] = static_cast<int>(columns.Int(0));
    }
  }
  const bool known =
      std::is_sorted(place.columns.begin(), place.columns.end()) && !place.columns.empty() && place.columns.front() > 0;
  if (known && table.Int(0) <= UINT32_MAX) place.root = static_cast<uint32_t>(table.Int(0));
  return place;
}

Status AskSqlite(const SqliteDb& db, const RowQuery& query, int64_t first, const TakeSqlRow& take) {
  const std::string sql = fmt::format("SELECT {0}, {1} FROM {2} WHERE {0} BETWEEN ?1 AND ?2 ORDER BY {0}", query.key,
                                      fmt::join(query.columns, ", "), query.table);
  MSP_ASSIGN_OR_RETURN(SqliteStatement rows, db.Prepare(sql));
  rows.Bind(1, first);
  rows.Bind(2, query.last);
  std::vector<SqlValue> values(query.columns.size());
  for (;;) {
    MSP_ASSIGN_OR_RETURN(const bool more, rows.Step());
    if (!more) return OkStatus();
    for (size_t i = 0; i < values.size(); ++i) {
      const int column = static_cast<int>(i) + 1;
      if (rows.IsNull(column)) {
        values[i] = {};
      } else if (rows.IsNumber(column)) {
        values[i] = {SqlValue::Kind::kNumber, rows.Int(column), rows.Real(column), {}};
      } else {
        values[i].Set(rows.Text(column));
      }
    }
    MSP_RETURN_IF_ERROR(take({rows.Int(0), values}));
  }
}

}  // namespace

Status ReadRows(const VisFile& file, const RowQuery& query, const TakeSqlRow& take) {
  return file.Ask([&](const SqliteDb& db) -> Status {
    MSP_ASSIGN_OR_RETURN(const TablePlace place, FindTable(db, query));
    if (!place.there) return OkStatus();
    int64_t next = query.first;
    const auto pages = place.root == 0 ? nullptr : TablePages::Open(file.path());
    if (pages) {
      MSP_ASSIGN_OR_RETURN(const bool read,
                           pages->Read({place.root, place.columns, query.first, query.last}, take, &next));
      if (read) return OkStatus();
    }
    return AskSqlite(db, query, next, take);
  });
}

}  // namespace msprobe::view
