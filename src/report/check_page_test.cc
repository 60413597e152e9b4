#include "report/check_page.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "base/text.h"
#include "dump/test_files.h"
#include "json/parser.h"
#include "sheet/check_names.h"

namespace msprobe {
namespace {

constexpr char kColumns[] =
    "\xEF\xBB\xBF"
    "API Name,Dtype,Verdict,Error (ulp),Round-off (ulp),Known,Element Error (ulp),Element Round-off (ulp),"
    "Rule,Terms,Condition,Required rtol,Required atol,Classes,Ulp Histogram\r\n";

std::string Row(const std::string& name, const std::string& verdict, const std::string& error,
                const std::string& histogram) {
  return name + ",torch.float32," + verdict + "," + error + ",2,,,,terms,1,,1e-6,0,," + histogram + "\r\n";
}

class CheckPageTest : public ::testing::Test {
 protected:
  const JsonValue& Read(const std::string& table) {
    const auto data = CheckPageData(table, {"a.vis.db"}, &head_);
    EXPECT_TRUE(data.ok());
    text_ = data.ok() ? *data : "{}";
    EXPECT_TRUE(ParseJson(text_, "page", &doc_).ok());
    return doc_;
  }

  TempDir dir_;
  ReportHead head_;
  std::string text_;
  JsonDoc doc_;
};

TEST(CheckNamesTest, OnlyTheTableOfFloat64) {
  EXPECT_TRUE(IsCheckFloat64Name("a/accuracy_checking_float64_20260101000000.csv"));
  EXPECT_EQ(CheckTimeOf("a/accuracy_checking_float64_20260101000000.csv"), "20260101000000");
  for (const char* name : {"accuracy_checking_float64_.csv", "accuracy_checking_result_20260101000000.csv",
                           "accuracy_checking_float64_1.xlsx", "accuracy_checking_float64_1.csv/a", ""})
    EXPECT_FALSE(IsCheckFloat64Name(name)) << name;
}

TEST_F(CheckPageTest, TheWorstComesFirstAndHistogramsAddUp) {
  const std::string table = dir_.Write(
      "accuracy_checking_float64_1.csv",
      kColumns + Row("Torch.exp.0.forward.output.0", "right", "0.1", "2^-4:1/2/0/0/0/0/0 0:5/0/0/0/0/0/0") +
          Row("Torch.exp.1.forward.output.0", "wrong", "100", "2^-4:0/0/0/0/0/9/1") +
          Row("Torch.exp.1.backward.output.0", "suspicious", "5", "") +
          Row("Functional.silu.0.forward.output.0", "wrong", "inf", "") + Row("odd", "never heard of", "", "x"));
  dir_.Write("accuracy_checking_result_1.csv",
             "API name,Forward Test Success,Backward Test Success,Message\r\n"
             "Torch.exp.0,pass, ,\r\nTorch.exp.1,pass,error,\"far, away\"\r\nTorch.rand.0,SKIP,SKIP,random\r\n");
  const JsonValue& json = Read(table);
  EXPECT_EQ(json["total"].Int(), 5);
  EXPECT_EQ(json["verdicts"]["wrong"].Int(), 2);
  EXPECT_EQ(json["verdicts"]["unknown"].Int(), 1);
  const auto rows = json["rows"].Items();
  ASSERT_EQ(rows.size(), 5u);
  EXPECT_EQ(rows[0].Items()[0].Text(), "Functional.silu.0.forward.output.0");
  EXPECT_EQ(rows[1].Items()[0].Text(), "Torch.exp.1.forward.output.0");
  EXPECT_EQ(rows[2].Items()[0].Text(), "Torch.exp.1.backward.output.0");
  bool found = false;
  for (const JsonValue& function : json["functions"].Items()) {
    if (function["name"].Text() != "Torch.exp" || function["direction"].Text() != "forward") continue;
    found = true;
    EXPECT_DOUBLE_EQ(function["times"].Number(), 50);
    const auto ranges = function["histogram"].Items();
    ASSERT_EQ(ranges.size(), 2u);
    EXPECT_EQ(ranges[0].Items()[1].Int(), 5);
    EXPECT_EQ(ranges[1].Items()[1].Int(), 1);
    EXPECT_EQ(ranges[1].Items()[6].Int(), 9);
    EXPECT_EQ(ranges[1].Items()[7].Int(), 1);
  }
  EXPECT_TRUE(found);
  const JsonValue& calls = json["calls"];
  EXPECT_EQ(calls["counts"].Find("pass")->Int(), 1);
  EXPECT_EQ(calls["counts"].Find("error")->Int(), 1);
  EXPECT_EQ(calls["total"].Int(), 2);
  EXPECT_EQ(calls["rows"].Items()[0].Items()[3].Text(), "far, away");
}

TEST_F(CheckPageTest, OfManyResultsTheWorstAreKept) {
  std::string text = kColumns;
  for (int i = 0; i < 30'000; ++i)
    text += Row("Torch.exp." + std::to_string(i) + ".forward.output.0", i == 7 ? "wrong" : "right", "0.1", "");
  const JsonValue& json = Read(dir_.Write("accuracy_checking_float64_1.csv", text));
  EXPECT_EQ(json["total"].Int(), 30'000);
  ASSERT_EQ(json["rows"].Items().size(), 10'000u);
  EXPECT_EQ(json["rows"].Items()[0].Items()[0].Text(), "Torch.exp.7.forward.output.0");
}

TEST_F(CheckPageTest, ALinkBesideTheTableIsNotFollowed) {
  const TempDir elsewhere;
  const std::string secret = elsewhere.Write(
      "secret.csv", "API name,Forward Test Success,Backward Test Success,Message\r\na,error,,secret\r\n");
  const std::string table = dir_.Write("accuracy_checking_float64_1.csv", kColumns);
  std::filesystem::create_symlink(secret, dir_.path() + "/accuracy_checking_result_1.csv");
  const JsonValue& json = Read(table);
  EXPECT_EQ(json["files"].size(), 1u);
  EXPECT_EQ(json["calls"]["total"].Int(), 0);
}

TEST_F(CheckPageTest, RangesOfHostileHistogramsAreBounded) {
  std::string text = kColumns, histogram;
  for (int i = 0; i < 300'000; ++i) histogram += std::to_string(i) + ":1 ";
  for (const char* name : {"Torch.cos.0.forward.output.0", "Torch.exp.0.forward.output.0"})
    text += Row(name, "right", "0", histogram);
  const JsonValue& json = Read(dir_.Write("accuracy_checking_float64_1.csv", text));
  EXPECT_EQ(json["functions"][0]["histogram"].size(), 300'000u);
  EXPECT_EQ(json["functions"][1]["histogram"].size(), 200'000u);
}

TEST_F(CheckPageTest, AnotherTableIsRefused) {
  const auto data = CheckPageData(dir_.Write("accuracy_checking_float64_1.csv", "a,b,c\r\n1,2,3\r\n"), {}, &head_);
  ASSERT_FALSE(data.ok());
  EXPECT_TRUE(Contains(data.status().message(), "no table of acc_check"));
  EXPECT_FALSE(CheckPageData(dir_.path() + "/nowhere.csv", {}, &head_).ok());
}

}  // namespace
}  // namespace msprobe
