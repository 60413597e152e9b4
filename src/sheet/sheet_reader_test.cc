#include "sheet/sheet_reader.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/file.h"
#include "base/text.h"
#include "dump/test_files.h"
#include "sheet/table.h"

namespace msprobe {
namespace {

namespace fs = std::filesystem;
using Rows = std::vector<std::vector<std::string>>;

/// Texts of all rows; "|" stands in front of the first row of a sheet.
template <typename Read>
Status Collect(const Read& read, const std::string& input, Rows* out) {
  return read(input, [&](const std::vector<SheetCell>& cells, bool first) {
    std::vector<std::string> row;
    for (const SheetCell& cell : cells) row.push_back((first && row.empty() ? "|" : "") + cell.text);
    out->push_back(row);
    return OkStatus();
  });
}

Status Csv(const std::string& text, Rows* out) {
  return Collect([](const std::string& s, const TakeRow& take) { return ReadCsvText(s, "a.csv", take); }, text, out);
}

TEST(SheetReaderTest, CsvAsPythonWritesIt) {
  Rows rows;
  ASSERT_TRUE(Csv("\xEF\xBB\xBFname,\"a \"\"b\"\", c\",\n1,\"x\ny\",z\r\n\n=1+1,,\n", &rows).ok());
  EXPECT_EQ(rows, (Rows{{"|name", "a \"b\", c", ""}, {"1", "x\ny", "z"}, {"=1+1", "", ""}}));
  rows.clear();
  ASSERT_TRUE(Csv("\n\na\nb", &rows).ok());
  EXPECT_EQ(rows, (Rows{{"|a"}, {"b"}})) << "empty lines are none";
  rows.clear();
  ASSERT_TRUE(Csv("", &rows).ok());
  EXPECT_TRUE(rows.empty());
  EXPECT_FALSE(Csv("a,\"b", &rows).ok());
}

TEST(SheetReaderTest, WhatWeWriteReadsBack) {
  TempDir dir;
  const std::string name = "F.<x> & \"y\".0.forward.input.0";
  for (const char* suffix : {"csv", "xlsx"}) {
    TableSpec spec;
    spec.path = dir.path() + "/x." + suffix;
    spec.columns = {"Name", "Shape", "Max"};
    auto table = CreateTable(spec, 1);
    ASSERT_TRUE(table.ok()) << table.status().message();
    RowBlock block;
    (*table)->AppendRow({Cell::Text(name), Cell::Text("[2, 3]"), Cell::Number(1.5)}, Cell::Color::kNone, &block);
    ASSERT_TRUE((*table)->Take(std::move(block)).ok());
    ASSERT_TRUE((*table)->Commit().ok());
    Rows read;
    const Status status = Collect(IsWorkbook(spec.path) ? ReadXlsx : ReadCsv, (*table)->paths()[0], &read);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(read, (Rows{{"|Name", "Shape", "Max"}, {name, "[2, 3]", "1.5"}}));
  }
}

TEST(SheetReaderTest, AttacksAreRefused) {
  int files = 0;
  for (const auto& entry : fs::directory_iterator(std::string(MSPROBE_SOURCE_DIR) + "/tests/attacks")) {
    const std::string path = entry.path().string(), name = entry.path().filename().string();
    const bool workbook = StartsWith(name, "xlsx_");
    if (!workbook && !StartsWith(name, "csv_")) continue;
    ++files;
    Rows rows;
    const Status status = Collect(workbook ? ReadXlsx : ReadCsv, path, &rows);
    EXPECT_EQ(status.code(), Code::kBadInput) << name;
    EXPECT_EQ(OneLine(status.message()), status.message()) << name;
    EXPECT_LT(rows.size(), 100u) << name;
  }
  EXPECT_GE(files, 23);
}

TEST(SheetReaderTest, SharedTextsAndPrefixesAreRead) {
  for (const char* name : {"stored.xlsx", "deflated.xlsx"}) {
    Rows rows;
    const Status status =
        Collect(ReadXlsx, std::string(MSPROBE_SOURCE_DIR) + "/tests/fuzz/corpus/sheet/" + name, &rows);
    ASSERT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(rows, (Rows{{"|NPU Name", "", "NPU max", "1.5", "1"}})) << name;
  }
}

}  // namespace
}  // namespace msprobe
