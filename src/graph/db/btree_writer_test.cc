#include "graph/db/btree_writer.h"

#include <sqlite3.h>

#include <algorithm>
#include <limits>

#include "graph/db/text_order.h"
#include "graph/graph_test_files.h"
#include "graph/test_query.h"

namespace msprobe {
namespace {

using Texts = std::vector<std::string>;

/// Letters that are not the same anywhere near.
std::string Letters(size_t size, uint32_t seed) {
  std::string out(size, ' ');
  for (char& c : out) {
    seed = seed * 1664525 + 1013904223;
    c = static_cast<char>('a' + (seed >> 16) % 26);
  }
  return out;
}

/// A database whose tables are filled twice, by inserting and by writing pages.
class BTreeWriterTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db_), SQLITE_OK);
    Query("PRAGMA page_size=16384");
    Query("PRAGMA journal_mode=OFF");
    Query("CREATE TABLE inserted (id INTEGER PRIMARY KEY, number INTEGER, real REAL, text TEXT)");
    Query("CREATE TABLE written (id INTEGER PRIMARY KEY, number INTEGER, real REAL, text TEXT)");
    Query("CREATE INDEX by_text ON written (text)");
  }
  void TearDown() override { sqlite3_close(db_); }
  Texts Query(const std::string& sql) { return msprobe::Query(db_, sql); }
  uint32_t Number(const std::string& sql) { return static_cast<uint32_t>(std::stoul(Query(sql).at(0))); }

  struct Line {
    int64_t id = 0, number = 0;
    double real = 0;
    std::string text;
  };

  void Insert(const std::vector<Line>& lines) {
    sqlite3_stmt* insert = nullptr;
    ASSERT_EQ(sqlite3_prepare_v2(db_, "INSERT INTO inserted VALUES (?,?,?,?)", -1, &insert, nullptr), SQLITE_OK);
    Query("BEGIN");
    for (const Line& line : lines) {
      sqlite3_bind_int64(insert, 1, line.id);
      sqlite3_bind_int64(insert, 2, line.number);
      sqlite3_bind_double(insert, 3, line.real);
      sqlite3_bind_text(insert, 4, line.text.data(), static_cast<int>(line.text.size()), SQLITE_STATIC);
      ASSERT_EQ(sqlite3_step(insert), SQLITE_DONE);
      sqlite3_reset(insert);
    }
    Query("COMMIT");
    sqlite3_finalize(insert);
  }

  void Write(const std::vector<Line>& lines) {
    const uint32_t table_root = Number("SELECT rootpage FROM sqlite_master WHERE name = 'written'");
    const uint32_t index_root = Number("SELECT rootpage FROM sqlite_master WHERE name = 'by_text'");
    const uint32_t pages = Number("PRAGMA page_count");
    sqlite3_close(db_);
    auto file = PageFile::Open(path_, "x.db", pages);
    ASSERT_TRUE(file.ok());
    BTreeWriter table(file->get(), BTreeWriter::Kind::kTable, table_root);
    BTreeWriter index(file->get(), BTreeWriter::Kind::kIndex, index_root);
    SqlRecord record;
    std::vector<std::string_view> texts;
    for (const Line& line : lines) {
      record.Clear();
      record.Null();
      record.Int(line.number);
      record.Real(line.real);
      record.TailText(line.text);
      table.AddRow(line.id, &record);
      texts.push_back(line.text);
    }
    table.Finish();
    for (const uint32_t i : OrderOfTexts(texts)) {
      record.Clear();
      record.Text(texts[i]);
      record.Int(lines[i].id);
      index.AddEntry(&record);
    }
    index.Finish();
    ASSERT_TRUE((*file)->Finish().ok());
    ASSERT_EQ(sqlite3_open(path_.c_str(), &db_), SQLITE_OK);
  }

  void ExpectSame(const std::vector<Line>& lines) {
    Insert(lines);
    Write(lines);
    EXPECT_EQ(Query("PRAGMA integrity_check"), (Texts{"ok"}));
    EXPECT_EQ(Number("SELECT count(*) FROM written NOT INDEXED"), lines.size());
    const std::string rows = "SELECT id, number, typeof(number), real, typeof(real), text, length(text) FROM ";
    EXPECT_EQ(Query(rows + "inserted EXCEPT " + rows + "written NOT INDEXED"), Texts());
    EXPECT_EQ(Query(rows + "written NOT INDEXED EXCEPT " + rows + "inserted"), Texts());
    EXPECT_EQ(Query("SELECT count(*) FROM (SELECT text FROM written INDEXED BY by_text ORDER BY text)"),
              (Texts{std::to_string(lines.size())}));
    // The file is one that can be written to.
    Query("INSERT INTO written SELECT id + 1000000000, number, real, text || 'x' FROM inserted");
    Query("DELETE FROM written WHERE id % 3 = 0");
    EXPECT_EQ(Query("PRAGMA integrity_check"), (Texts{"ok"}));
  }

  DumpDir dir_;
  std::string path_ = dir_.Path("x.db");
  sqlite3* db_ = nullptr;
};

TEST_F(BTreeWriterTest, NothingAtAll) { ExpectSame({}); }

TEST_F(BTreeWriterTest, NumbersOfEveryWidth) {
  std::vector<Line> lines;
  int64_t id = 0;
  for (int bit = 0; bit < 63; ++bit) {
    for (const int64_t near : {-1, 0, 1}) {
      const int64_t v = (int64_t{1} << bit) + near;
      lines.push_back({++id, v, static_cast<double>(v), ""});
      lines.push_back({++id, -v, static_cast<double>(v) + 0.5, "a"});
    }
  }
  for (const double real : {-0.0, 1e300, 5e-324, std::numeric_limits<double>::quiet_NaN(),
                            std::numeric_limits<double>::infinity(), -140737488355328.0}) {
    lines.push_back({id *= 3, INT64_MIN, real, std::string("\0\xFF", 2)});
  }
  ExpectSame(lines);
}

// At each height the last page may be left without a cell of its own.
TEST_F(BTreeWriterTest, EveryNumberOfRowsAroundAFullPage) {
  // Entries of more than 4000 bytes: three or four on a page, so the index is high.
  for (size_t count = 1; count < 40; ++count) {
    std::vector<Line> lines;
    for (size_t i = 0; i < count; ++i) lines.push_back({static_cast<int64_t>(i), 0, 0, Letters(4060, i)});
    ExpectSame(lines);
    Query("DELETE FROM inserted");
    Query("DROP TABLE written");
    Query("CREATE TABLE written (id INTEGER PRIMARY KEY, number INTEGER, real REAL, text TEXT)");
    Query("CREATE INDEX by_text ON written (text)");
    Query("VACUUM");
  }
}

TEST_F(BTreeWriterTest, TextsAroundTheSizesThatOverflow) {
  std::vector<Line> lines;
  for (const size_t around : {1900, 4070, 16330, 16360, 20450, 32720, 49100}) {
    for (size_t i = 0; i < 60; ++i) {
      lines.push_back({static_cast<int64_t>(lines.size()), 0, 0.25, Letters(around + i, lines.size())});
    }
  }
  lines.push_back({static_cast<int64_t>(lines.size()), 0, 0.25, Letters(5'000'000, 7)});
  ExpectSame(lines);
}

TEST_F(BTreeWriterTest, ManyRows) {
  std::vector<Line> lines;
  for (uint32_t i = 0; i < 100'000; ++i) {
    lines.push_back({i + (i > 1000 ? int64_t{1} << 40 : 0), i, i / 2.0, Letters(i % 50, i)});
  }
  ExpectSame(lines);
}

// SQLite keeps the page at one gigabyte free. The file is sparse: nothing is written before that.
TEST_F(BTreeWriterTest, ThePageOfTheLockByteIsLeftOut) {
  constexpr uint32_t kLockPage = (1 << 30) / kSqlPageBytes + 1;
  const std::string path = dir_.Write("pages", std::string(200, 'x'));
  auto file = PageFile::Open(path, "pages", kLockPage - 3);
  ASSERT_TRUE(file.ok());
  std::vector<uint32_t> numbers;
  for (int i = 0; i < 4; ++i) {
    const uint32_t next = (*file)->next();
    uint32_t number = 0;
    std::fill_n((*file)->Add(&number), kSqlPageBytes, 'y');
    EXPECT_EQ(next, number);
    numbers.push_back(number);
  }
  EXPECT_EQ(numbers, (std::vector<uint32_t>{kLockPage - 2, kLockPage - 1, kLockPage + 1, kLockPage + 2}));
  EXPECT_TRUE((*file)->Finish().ok());
}

TEST(OrderOfTextsTest, IsThatOfTheBytes) {
  std::vector<std::string> texts = {"", "a", std::string("a\0", 2), std::string("a\0b", 3), "\xFF", "b"};
  for (uint32_t i = 0; i < 3000; ++i) {
    texts.push_back("Module.layers." + std::to_string(i % 97) + (i % 2 ? ".mlp.MLP.forward." : ".mlp.MLP.") +
                    std::to_string(i * 7919 % 3001));
    texts.push_back(std::string(i % 40, 'x') + std::string(i % 3, '\0'));
  }
  std::vector<std::string_view> views(texts.begin(), texts.end());
  std::vector<std::string_view> sorted = views;
  std::sort(sorted.begin(), sorted.end());
  std::vector<std::string_view> ours;
  for (const uint32_t i : OrderOfTexts(views)) ours.push_back(views[i]);
  EXPECT_EQ(ours, sorted);
}

}  // namespace
}  // namespace msprobe
