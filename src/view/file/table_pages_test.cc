// What is read page by page is what SQLite reads.
#include "view/file/table_pages.h"

#include <gtest/gtest.h>

#include <cmath>
#include <fstream>
#include <iterator>
#include <random>

#include "base/interrupt.h"
#include "view/file/sqlite_db.h"
#include "view/test_db.h"

namespace msprobe::view {
namespace {

constexpr int64_t kLow = -9223372036854775807 - 1, kHigh = 9223372036854775807;

std::string Shown(const SqlValue& value) {
  if (value.IsNull()) return "null";
  if (value.IsNumber()) return std::to_string(value.integer) + " " + std::to_string(value.real);
  return "'" + std::string(value.text) + "'";
}

// A table of small pages, so that few rows make a tree of some height.
struct TablePagesTest : testing::Test {
  static constexpr int kColumns[] = {1, 2, 4};  // of: id, a, b, c, d
  void Make(int rows) const {
    std::string sql = "PRAGMA page_size=512; BEGIN; CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c, d);";
    std::mt19937 random(11);
    const char* values[] = {"NULL",
                            "0",
                            "1",
                            "-1",
                            "127",
                            "-129",
                            "70000",
                            "-8388609",
                            "3000000000",
                            "-140737488355329",
                            "9223372036854775807",
                            "0.5",
                            "-1e300",
                            "9e999",
                            "1e19",
                            "''",
                            "'text'",
                            "x'00ff80'"};
    int64_t id = -40;
    for (int i = 0; i < rows; ++i) {
      id += 1 + static_cast<int64_t>(random() % 3);
      sql += "INSERT INTO t VALUES (" + std::to_string(id);
      for (int column = 0; column < 4; ++column) sql += std::string(",") + values[random() % std::size(values)];
      sql += ");";
    }
    RunSql(path, sql + "COMMIT;");
  }
  uint32_t Root() const {
    const auto db = SqliteDb::OpenImmutable(path, "t");
    auto query = db->Prepare("SELECT rootpage FROM sqlite_master WHERE name = 't'");
    EXPECT_TRUE(*query->Step());
    return static_cast<uint32_t>(query->Int(0));
  }
  // All rows as text; whether that was everything, and where SQLite would go on.
  std::string Pages(uint32_t root, int64_t first, int64_t last, bool* whole, int64_t* next) const {
    std::string out;
    const auto pages = TablePages::Open(path);
    if (!pages) return "no file";
    const auto read = pages->Read(
        {root, kColumns, first, last},
        [&](const SqlRow& row) {
          out += std::to_string(row.id);
          for (const SqlValue& value : row.values) out += " | " + Shown(value);
          out += "\n";
          return OkStatus();
        },
        next);
    EXPECT_TRUE(read.ok());
    *whole = *read;
    return out;
  }
  std::string Sqlite(int64_t first, int64_t last) const {
    const auto db = SqliteDb::OpenImmutable(path, "t");
    auto query = db->Prepare("SELECT id, a, b, d FROM t WHERE id BETWEEN ?1 AND ?2 ORDER BY id");
    query->Bind(1, first);
    query->Bind(2, last);
    std::string out;
    while (*query->Step()) {
      out += std::to_string(query->Int(0));
      for (int i = 1; i < 4; ++i) {
        SqlValue value;
        if (query->IsNumber(i)) {
          value = {SqlValue::Kind::kNumber, query->Int(i), query->Real(i), {}};
        } else if (!query->IsNull(i)) {
          value.Set(query->Text(i));
        }
        out += " | " + Shown(value);
      }
      out += "\n";
    }
    return out;
  }
  void ExpectSame(int64_t first, int64_t last) const {
    bool whole = false;
    int64_t next = 0;
    EXPECT_EQ(Pages(Root(), first, last, &whole, &next), Sqlite(first, last)) << first << " to " << last;
    EXPECT_TRUE(whole);
  }

  TestDir dir;
  std::string path = dir / "t.db";
};

TEST_F(TablePagesTest, EndsWhenInterrupted) {
  Make(3000);
  const auto pages = TablePages::Open(path);
  ASSERT_NE(pages, nullptr);
  int64_t next = 0, rows = 0;
  const auto take = [&](const SqlRow&) {
    if (++rows == 5) SetInterruptRequested(true);
    return OkStatus();
  };
  const auto read = pages->Read({Root(), kColumns, kLow, kHigh}, take, &next);
  SetInterruptRequested(false);
  ASSERT_FALSE(read.ok());
  EXPECT_EQ(read.status().code(), Code::kInterrupted);
  EXPECT_LT(rows, 100);  // those of the page in hand
}

TEST_F(TablePagesTest, RowsOfAnyRangeAndKind) {
  Make(3000);
  const uint32_t root = Root();
  EXPECT_GT(root, 1u);
  ExpectSame(kLow, kHigh);
  for (const int64_t first : {int64_t{-40}, int64_t{0}, int64_t{17}, int64_t{2999}, int64_t{100000}, kHigh}) {
    for (const int64_t count : {0, 1, 2, 500}) ExpectSame(first, first > 100000 ? first : first + count);
  }
}

TEST_F(TablePagesTest, WhatIsNotInThePageIsLeftToSqlite) {
  Make(200);
  // The last column of a row may lie elsewhere as long as nobody asks for it; c is not asked for.
  RunSql(path, "ALTER TABLE t ADD COLUMN e; UPDATE t SET e = printf('%.*c', 5000, 'e') WHERE id = 20 OR id = 21;");
  RunSql(path,
         "DELETE FROM t WHERE id BETWEEN 18 AND 22; INSERT INTO t VALUES (20, 1, 2, 3, 4, printf('%.*c', 5000, 'e'))");
  ExpectSame(kLow, kHigh);
  RunSql(path, "UPDATE t SET b = printf('%.*c', 5000, 'b') WHERE id = 20");
  bool whole = true;
  int64_t next = 0;
  const std::string before = Pages(Root(), kLow, kHigh, &whole, &next);
  EXPECT_FALSE(whole);
  EXPECT_GT(next, 0);
  EXPECT_LE(next, 20);
  EXPECT_EQ(before, Sqlite(kLow, 19));
  EXPECT_EQ(before + Sqlite(next, kHigh), Sqlite(kLow, kHigh));
}

TEST_F(TablePagesTest, OtherFilesAreRefused) {
  bool whole = true;
  int64_t next = 0;
  EXPECT_EQ(TablePages::Open(dir / "nothing"), nullptr);
  dir.Write("text", std::string(2000, 'x'));
  EXPECT_EQ(TablePages::Open(dir / "text"), nullptr);
  RunSql(dir / "wide.db", "PRAGMA encoding='UTF-16'; CREATE TABLE t (id INTEGER PRIMARY KEY)");
  EXPECT_EQ(TablePages::Open(dir / "wide.db"), nullptr);
  RunSql(path,
         "CREATE TABLE t (id INTEGER PRIMARY KEY, a, b, c, d) WITHOUT ROWID; INSERT INTO t VALUES (1, 2, 3, 4, 5)");
  EXPECT_EQ(Pages(Root(), kLow, kHigh, &whole, &next), "");
  EXPECT_FALSE(whole);
  for (const uint32_t root : {0u, 1u, 77u, UINT32_MAX}) {
    EXPECT_EQ(Pages(root, kLow, kHigh, &whole, &next), "");
    EXPECT_FALSE(whole);
  }
}

TEST_F(TablePagesTest, AnErrorOfTheTakerEndsTheReading) {
  Make(50);
  int taken = 0;
  int64_t next = 0;
  const auto read = TablePages::Open(path)->Read(
      {Root(), kColumns, kLow, kHigh}, [&](const SqlRow&) { return ++taken == 7 ? BadInput("enough") : OkStatus(); },
      &next);
  EXPECT_EQ(read.status().message(), "enough");
  EXPECT_EQ(taken, 7);
}

// Rows stay in order, and what is read stays within the pages, whatever the bytes say.
TEST_F(TablePagesTest, DamagedPagesDoNoHarm) {
  Make(600);
  const uint32_t root = Root();
  std::ifstream in(path, std::ios::binary);
  const std::string good((std::istreambuf_iterator<char>(in)), {});
  std::mt19937 random(3);
  int stopped = 0;
  size_t read_bytes = 0;
  for (int round = 0; round < 400; ++round) {
    std::string bad = good;
    for (unsigned i = 0; i <= random() % 20; ++i)
      bad[100 + random() % (bad.size() - 100)] = static_cast<char>(random());
    // The heads of pages lead furthest.
    if (round % 2 == 0)
      bad[(1 + random() % (bad.size() / 512 - 1)) * 512 + random() % 16] = static_cast<char>(random());
    dir.Write("t.db", bad);
    int64_t next = 0, last = kLow;
    const auto pages = TablePages::Open(path);
    ASSERT_NE(pages, nullptr);
    const auto read = pages->Read(
        {root, kColumns, -40, kHigh},
        [&](const SqlRow& row) {
          EXPECT_GT(row.id, last);
          last = row.id;
          for (const SqlValue& value : row.values) read_bytes += std::string(value.text).size();
          return OkStatus();
        },
        &next);
    ASSERT_TRUE(read.ok());
    stopped += !*read;
    EXPECT_GE(next, last == kLow ? -40 : last);
  }
  EXPECT_GT(stopped, 50);
  EXPECT_GT(read_bytes, 0u);
}

}  // namespace
}  // namespace msprobe::view
