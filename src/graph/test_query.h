// For tests: what a query of a .vis.db answers.
#pragma once

#include <gtest/gtest.h>
#include <sqlite3.h>

#include <string>
#include <vector>

namespace msprobe {

/// All rows, columns joined by '|'.
inline std::vector<std::string> Query(sqlite3* db, const std::string& sql) {
  std::vector<std::string> rows;
  sqlite3_stmt* s = nullptr;
  EXPECT_EQ(sqlite3_prepare_v2(db, sql.c_str(), -1, &s, nullptr), SQLITE_OK) << sqlite3_errmsg(db);
  while (sqlite3_step(s) == SQLITE_ROW) {
    std::string row;
    for (int i = 0; i < sqlite3_column_count(s); ++i) {
      const auto* text = reinterpret_cast<const char*>(sqlite3_column_text(s, i));
      row += (i ? "|" : "") + std::string(text ? text : "NULL");
    }
    rows.push_back(row);
  }
  EXPECT_EQ(sqlite3_finalize(s), SQLITE_OK) << sqlite3_errmsg(db);
  return rows;
}

inline std::vector<std::string> Query(const std::string& file, const std::string& sql) {
  sqlite3* db = nullptr;
  EXPECT_EQ(sqlite3_open_v2(file.c_str(), &db, SQLITE_OPEN_READONLY, nullptr), SQLITE_OK);
  std::vector<std::string> rows = Query(db, sql);
  sqlite3_close(db);
  return rows;
}

}  // namespace msprobe
