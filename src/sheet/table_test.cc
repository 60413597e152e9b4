#include "sheet/table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "dump/test_files.h"
#include "json/parser.h"
#include "sheet/sheet_reader.h"

namespace msprobe {
namespace {

std::string Field(std::string_view text) {
  std::string out;
  AppendCsvField(&out, text);
  return out;
}

TEST(CsvFieldTest, QuotesAsPythonDoes) {
  EXPECT_EQ(Field("plain text"), "plain text");
  EXPECT_EQ(Field(""), "");
  EXPECT_EQ(Field("[2, 3]"), "\"[2, 3]\"");
  EXPECT_EQ(Field("say \"x\""), "\"say \"\"x\"\"\"");
  EXPECT_EQ(Field("two\nlines"), "\"two\nlines\"");
  EXPECT_EQ(Field("a;b"), "a;b");
  EXPECT_EQ(Field("ä=b"), "ä=b");
}

TEST(CsvFieldTest, FormulasBecomeText) {
  EXPECT_EQ(Field("=1+1"), "'=1+1");
  EXPECT_EQ(Field("@SUM(A1)"), "'@SUM(A1)");
  EXPECT_EQ(Field("-cmd"), "'-cmd");
  EXPECT_EQ(Field("+x,y"), "\"'+x,y\"");
  EXPECT_EQ(Field("％x"), "'％x");
  EXPECT_EQ(Field("＝1"), "'＝1");
  EXPECT_EQ(Field("x;=1"), "x;'=1");
  EXPECT_EQ(Field("-"), "'-");
  EXPECT_EQ(Field("-1.5"), "-1.5") << "a number may have a sign";
  EXPECT_EQ(Field("+3e5"), "+3e5");
  EXPECT_EQ(Field("\n5"), "\"\n5\"") << "a number, but a line break needs its quotes";
}

TEST(StackCellTest, IsAPythonList) {
  EXPECT_EQ(StackCell({"a", "it's \"b\"\n"}), "['a', 'it\\'s \"b\"\\n']");
  EXPECT_EQ(StackCell({}), "[]");
}

class TableTest : public testing::Test {
 protected:
  /// Gives so many rows to the table, as one block.
  static Status Put(ResultTable* table, int rows) {
    RowBlock block;
    for (int i = 0; i < rows; ++i) {
      const std::string name = "row " + std::to_string(i);
      table->AppendRow({Cell::Text(name), Cell::Number(i)}, Cell::Color::kNone, &block);
    }
    return table->Take(std::move(block));
  }
  /// A file with one row of these cells.
  std::string CsvOf(const std::vector<Cell>& cells, SharedTexts shared = nullptr) {
    TableSpec spec = Spec("row.csv");
    spec.shared = std::move(shared);
    auto table = CreateCsvTable(spec);
    RowBlock block;
    (*table)->AppendRow(cells, Cell::Color::kNone, &block);
    return block.bytes;
  }
  std::vector<std::string> Files() {
    std::vector<std::string> out;
    for (const auto& entry : std::filesystem::directory_iterator(dir_.path())) out.push_back(entry.path().filename());
    std::sort(out.begin(), out.end());
    return out;
  }
  TableSpec Spec(const std::string& name) {
    TableSpec spec;
    spec.path = dir_.path() + "/" + name;
    spec.columns = {"Name", "Value"};
    return spec;
  }
  static long Lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }
  TempDir dir_;
};

TEST_F(TableTest, CsvOfEveryKindOfCell) {
  EXPECT_EQ(CsvOf({Cell::Text("a,b"), Cell::Text("=1"), Cell::Word("[]")}), "\"a,b\",'=1,[]\n");
  EXPECT_EQ(CsvOf({Cell::Number(0.5), Cell::Number(-INFINITY), Cell::Number(0.1234, "0.123")}), "0.5, -inf,0.123\n");
  EXPECT_EQ(CsvOf({Cell::Figure(-2), Cell::Figure(NAN, "Nan"), Cell::Percent(12.5)}), "-2.0,Nan,12.5%\n");
  EXPECT_EQ(CsvOf({Cell::Integer(-7), Cell::Unsigned(UINT64_MAX), Cell::Bool(true)}), "-7,18446744073709551615,True\n");
  const auto shared = std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"x", "['a', 'b']"});
  EXPECT_EQ(CsvOf({Cell::Shared(1), Cell::Shared(0)}, shared), "\"['a', 'b']\",x\n");
}

TEST_F(TableTest, TheTextOfACellIsDisarmedAndNotQuoted) {
  const auto text = [](const Cell& cell) {
    std::string out;
    AppendCsvText(cell, &out);
    return out;
  };
  EXPECT_EQ(text(Cell::Text("say \"x\",;=1")), "say \"x\",;'=1");
  EXPECT_EQ(text(Cell::Text("+x")), "'+x");
  EXPECT_EQ(text(Cell::Number(INFINITY)), " inf");
}

TEST_F(TableTest, WorkbooksKeepTypesAndColours) {
  TableSpec spec = Spec("cells.xlsx");
  spec.shared = std::make_shared<const std::vector<std::string>>(std::vector<std::string>{"a stack"});
  auto table = CreateXlsxTable(spec, 1);
  ASSERT_TRUE(table.ok()) << table.status().message();
  Cell red = Cell::Word("error");
  red.color = Cell::Color::kRed;
  RowBlock block;
  (*table)->AppendRow({Cell::Text("=1"), Cell::Number(0.5), Cell::Number(INFINITY), Cell::Figure(0, "0"),
                       Cell::Bool(true), Cell::Shared(0), Cell::Unsigned(3), red},
                      Cell::Color::kYellow, &block);
  ASSERT_EQ(block.cells.size(), 8u);
  EXPECT_EQ(block.cells[0].color, Cell::Color::kYellow);
  EXPECT_EQ(block.cells[7].color, Cell::Color::kRed);
  ASSERT_TRUE((*table)->Take(std::move(block)).ok());
  ASSERT_TRUE((*table)->Commit().ok());
  std::vector<std::vector<std::pair<SheetCell::Kind, std::string>>> rows;
  const auto take = [&](const std::vector<SheetCell>& cells, bool) {
    auto& row = rows.emplace_back();
    for (const SheetCell& cell : cells) row.emplace_back(cell.kind, cell.text);
    return OkStatus();
  };
  ASSERT_TRUE(ReadXlsx((*table)->paths()[0], take).ok());
  using Kind = SheetCell::Kind;
  ASSERT_EQ(rows.size(), 2u);
  EXPECT_EQ(rows[1], (std::vector<std::pair<Kind, std::string>>{{Kind::kText, "=1"},
                                                                {Kind::kNumber, "0.5"},
                                                                {Kind::kText, "inf"},
                                                                {Kind::kText, "0"},
                                                                {Kind::kBool, "1"},
                                                                {Kind::kText, "a stack"},
                                                                {Kind::kNumber, "3"},
                                                                {Kind::kText, "error"}}));
}

TEST_F(TableTest, NothingIsLeftWithoutCommit) {
  {
    auto table = CreateCsvTable(Spec("r.csv"));
    ASSERT_TRUE(table.ok());
    ASSERT_TRUE(Put(table->get(), 3).ok());
  }
  EXPECT_TRUE(Files().empty());
  {
    auto table = CreateXlsxTable(Spec("r.xlsx"), 3);
    ASSERT_TRUE(table.ok()) << table.status().message();
    ASSERT_TRUE(Put(table->get(), 3).ok());
  }
  EXPECT_TRUE(Files().empty());
}

TEST_F(TableTest, CsvIsOneFileUpToTheLimit) {
  auto table = CreateCsvTable(Spec("r_1.csv"), 10);
  ASSERT_TRUE(Put(table->get(), 10).ok());
  ASSERT_TRUE((*table)->Commit().ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"r_1.csv"}));
  const std::string text = ReadAll(dir_.path() + "/r_1.csv");
  EXPECT_EQ(Lines(text), 11);
  EXPECT_TRUE(StartsWith(text, "Name,Value\n"));
  EXPECT_TRUE(Contains(text, "\nrow 3,3.0\n"));
  EXPECT_EQ(std::filesystem::status((*table)->paths()[0]).permissions(), std::filesystem::perms(0640));
}

TEST_F(TableTest, CsvIsSplitBeyondTheLimit) {
  auto table = CreateCsvTable(Spec("r_1.csv"), 8);
  ASSERT_TRUE(Put(table->get(), 10).ok());
  ASSERT_TRUE(Put(table->get(), 10).ok());
  ASSERT_TRUE((*table)->Commit().ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"r_1_part_1.csv", "r_1_part_2.csv", "r_1_part_3.csv"}));
  EXPECT_EQ((*table)->paths().size(), 3u);
  EXPECT_EQ(Lines(ReadAll((*table)->paths()[0])), 9);
  EXPECT_EQ(Lines(ReadAll((*table)->paths()[2])), 5);
  EXPECT_TRUE(StartsWith(ReadAll((*table)->paths()[2]), "Name,"));
}

TEST_F(TableTest, XlsxIsAZipWithTheRightSheets) {
  auto table = CreateXlsxTable(Spec("r.xlsx"), 20, 8);
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_TRUE(Put(table->get(), 10).ok());
  ASSERT_TRUE(Put(table->get(), 10).ok());
  ASSERT_TRUE((*table)->Commit().ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"r.xlsx"}));
  const std::string zip = ReadAll((*table)->paths()[0]);
  EXPECT_TRUE(StartsWith(zip, "PK"));
  EXPECT_TRUE(Contains(zip, "xl/worksheets/sheet3.xml"));
  EXPECT_FALSE(Contains(zip, "xl/worksheets/sheet4.xml"));
}

TEST_F(TableTest, ADirectoryThatCannotBeWrittenIsAnError) {
  TableSpec spec;
  spec.path = dir_.path() + "/absent/r.csv";
  EXPECT_FALSE(CreateCsvTable(spec).ok());
  spec.path = dir_.path() + "/absent/r.xlsx";
  EXPECT_FALSE(CreateXlsxTable(spec, 1).ok());
}

}  // namespace
}  // namespace msprobe
