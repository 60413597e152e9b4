// SQLite for reading files that may be hostile: read-only, immutable, bounded.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/status.h"

struct sqlite3;
struct sqlite3_stmt;

namespace msprobe::view {

/// A prepared statement; reset and reused by its owner.
class SqliteStatement {
 public:
  SqliteStatement(SqliteStatement&&) noexcept;
  SqliteStatement& operator=(SqliteStatement&&) noexcept;
  ~SqliteStatement();
  void Reset();
  void Bind(int at, int64_t value);
  void Bind(int at, std::string_view value);  ///< the text must outlive the steps
  /// True when there is a row. An error names the file.
  StatusOr<bool> Step();
  bool IsNull(int column) const;
  int64_t Int(int column) const;
  double Real(int column) const;
  bool IsNumber(int column) const;
  /// Nothing for what is not a number.
  std::optional<double> Number(int column) const {
    return IsNumber(column) ? std::optional(Real(column)) : std::nullopt;
  }
  /// Valid until the next Step or Reset; "" for NULL.
  std::string_view Text(int column) const;

 private:
  friend class SqliteDb;
  SqliteStatement(sqlite3_stmt* stmt, std::string_view file) : stmt_(stmt), file_(file) {}
  sqlite3_stmt* stmt_ = nullptr;
  std::string file_;
};

class SqliteDb {
 public:
  /// Opens without locks, -wal or -shm: nothing is created beside the file, and the directory may be read-only. `shown`
  /// is how errors name it.
  static StatusOr<SqliteDb> OpenImmutable(const std::string& path, std::string_view shown);
  SqliteDb(SqliteDb&&) noexcept;
  SqliteDb& operator=(SqliteDb&&) noexcept;
  ~SqliteDb();
  StatusOr<SqliteStatement> Prepare(std::string_view sql) const;

 private:
  SqliteDb(sqlite3* db, std::string_view shown) : db_(db), shown_(shown) {}
  sqlite3* db_ = nullptr;
  std::string shown_;
};

}  // namespace msprobe::view
