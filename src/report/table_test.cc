#include "report/table.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "base/text.h"
#include "dump/test_files.h"
#include "report/columns.h"

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
}

TEST(StackCellTest, IsAPythonList) {
  EXPECT_EQ(StackCell({"a", "it's \"b\"\n"}), "['a', 'it\\'s \"b\"\\n']");
  EXPECT_EQ(StackCell({}), "[]");
}

TEST(ColumnsTest, OfBothModes) {
  EXPECT_EQ(TableColumns(CompareMode::kStatistics, true).size(), 28u);
  EXPECT_EQ(TableColumns(CompareMode::kStatistics, false).back(), "Err_message");
  EXPECT_EQ(TableColumns(CompareMode::kChecksum, true).size(), 14u);
}

class TableTest : public testing::Test {
 protected:
  /// One op with `rows` inputs.
  void Fill(int rows) {
    std::string items;
    for (int i = 0; i < rows; ++i)
      items += std::string(i ? ", " : "") + R"({"type": "str", "value": ")" + std::to_string(i) + R"("})";
    ASSERT_TRUE(ParseJson("{\"input_args\": [" + items + "]}", "op", &doc_).ok());
    DiffOps("F.f.0.forward", doc_, "", nullptr, {}, &diff_);
  }
  /// Formats the op once and gives it to the table, as one block.
  Status Put(ResultTable* table) {
    RowBlock block;
    table->format().AppendOp(diff_, -1, &block);
    return table->Take(std::move(block));
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
    return spec;
  }
  static long Lines(const std::string& text) { return std::count(text.begin(), text.end(), '\n'); }
  TempDir dir_;
  JsonDoc doc_;
  OpDiff diff_;
};

TEST_F(TableTest, NothingIsLeftWithoutCommit) {
  Fill(3);
  {
    auto table = CreateCsvTable(Spec("r.csv"));
    ASSERT_TRUE(table.ok());
    ASSERT_TRUE(Put(table->get()).ok());
  }
  EXPECT_TRUE(Files().empty());
  {
    auto table = CreateXlsxTable(Spec("r.xlsx"), 3);
    ASSERT_TRUE(table.ok()) << table.status().message();
    ASSERT_TRUE(Put(table->get()).ok());
  }
  EXPECT_TRUE(Files().empty());
}

TEST_F(TableTest, CsvIsOneFileUpToTheLimit) {
  Fill(10);
  auto table = CreateCsvTable(Spec("r_1.csv"), 10);
  ASSERT_TRUE(Put(table->get()).ok());
  ASSERT_TRUE((*table)->Commit().ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"r_1.csv"}));
  const std::string text = ReadAll(dir_.path() + "/r_1.csv");
  EXPECT_EQ(Lines(text), 11);
  EXPECT_TRUE(StartsWith(text, "NPU Name,Bench Name,"));
  EXPECT_TRUE(Contains(text, "\nF.f.0.forward.input.3,N/A,<class 'str'>,N/A,[],N/A,N/A,N/A,N/A,"));
  EXPECT_EQ(std::filesystem::status((*table)->paths()[0]).permissions(), std::filesystem::perms(0640));
}

TEST_F(TableTest, CsvIsSplitBeyondTheLimit) {
  Fill(10);
  auto table = CreateCsvTable(Spec("r_1.csv"), 8);
  ASSERT_TRUE(Put(table->get()).ok());
  ASSERT_TRUE(Put(table->get()).ok());
  ASSERT_TRUE((*table)->Commit().ok());
  EXPECT_EQ(Files(), (std::vector<std::string>{"r_1_part_1.csv", "r_1_part_2.csv", "r_1_part_3.csv"}));
  EXPECT_EQ((*table)->paths().size(), 3u);
  EXPECT_EQ(Lines(ReadAll((*table)->paths()[0])), 9);
  EXPECT_EQ(Lines(ReadAll((*table)->paths()[2])), 5);
  EXPECT_TRUE(StartsWith(ReadAll((*table)->paths()[2]), "NPU Name,"));
}

TEST_F(TableTest, XlsxIsAZipWithTheRightSheets) {
  Fill(10);
  auto table = CreateXlsxTable(Spec("r.xlsx"), 20, 8);
  ASSERT_TRUE(table.ok()) << table.status().message();
  ASSERT_TRUE(Put(table->get()).ok());
  ASSERT_TRUE(Put(table->get()).ok());
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
