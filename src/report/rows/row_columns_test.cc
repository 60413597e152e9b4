#include "report/rows/row_columns.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>

#include "base/text.h"
#include "dump/test_files.h"
#include "report/rows/ops_json.h"
#include "report/rows/row_sink.h"
#include "sheet/sheet_reader.h"

namespace msprobe {
namespace {

std::vector<std::string> Titles(CompareMode mode, const std::function<void(RowSettings*)>& change = {}) {
  RowSettings settings;
  settings.mode = mode;
  if (change) change(&settings);
  return RowColumns(settings).titles();
}

TEST(RowColumnsTest, EachModeHasItsColumns) {
  EXPECT_EQ(Titles(CompareMode::kStatistics).size(), 27u);
  EXPECT_EQ(Titles(CompareMode::kStatistics).back(), "Err_message");
  EXPECT_EQ(Titles(CompareMode::kChecksum).size(), 13u);
  EXPECT_EQ(Titles(CompareMode::kTensor).size(), 20u + kMetricCount);
  EXPECT_EQ(Titles(CompareMode::kTensor).back(), "Data_name");
}

TEST(RowColumnsTest, EachMetricHasOneOfItsOwn) {
  const std::vector<std::string> titles = Titles(CompareMode::kTensor);
  RowSettings settings;
  settings.mode = CompareMode::kTensor;
  const RowColumns columns(settings);
  for (size_t k = 0; k < kMetricCount; ++k) {
    const Metric& metric = *kMetrics[k];
    EXPECT_EQ(std::count(titles.begin(), titles.end(), metric.title), 1) << metric.title;
    EXPECT_EQ(titles[8 + k], metric.title) << "in the order of metrics.def";
    EXPECT_EQ(columns.curve(8 + k), metric.curve) << metric.title;
  }
}

TEST(RowColumnsTest, OthersOnlyWhenAskedFor) {
  TempDir dir;
  const auto stacks = StackFile::Open(dir.Write("stack.json", "{}"));
  ASSERT_TRUE(stacks.ok());
  const std::vector<ReplayedOp> replays;
  const auto all = [&](RowSettings* s) {
    s->stacks = &*stacks;
    s->ruler = true;
    s->replays = &replays;
    s->custom = {"mine", "yours"};
  };
  const std::vector<std::string> titles = Titles(CompareMode::kTensor, all);
  EXPECT_EQ(titles.size(), 30u + kMetricCount);
  EXPECT_EQ(titles[8 + kMetricCount], "mine");
  EXPECT_EQ(titles[9 + kMetricCount], "yours");
  EXPECT_EQ(titles.back(), "Bench Replay Error");
  const std::vector<std::string> statistics = Titles(CompareMode::kStatistics, all);
  EXPECT_EQ(std::count(statistics.begin(), statistics.end(), "mine"), 0);
}

TEST(RowColumnsTest, ReleaseEightNamesItsVerdict) {
  const auto older = [](RowSettings* s) { s->older = true; };
  const auto tensors = Titles(CompareMode::kTensor, older);
  EXPECT_EQ(std::count(tensors.begin(), tensors.end(), "Accuracy Reached or Not"), 1);
  EXPECT_EQ(std::count(tensors.begin(), tensors.end(), "Result"), 0);
  EXPECT_EQ(Titles(CompareMode::kChecksum, older).back(), "Result");
  EXPECT_EQ(Titles(CompareMode::kStatistics, older).back(), "Err_message");
}

TEST(RowColumnsTest, TheAnalysisHasColumnsOfItsOwn) {
  const auto analysis = [](RowSettings* s) { s->analysis = s->ruler = true; };
  const auto titles = Titles(CompareMode::kStatistics, analysis);
  EXPECT_EQ(titles.back(), "Bench P2POp peer");
  EXPECT_EQ(std::count(titles.begin(), titles.end(), "Result"), 1);
  EXPECT_EQ(std::count(titles.begin(), titles.end(), "Ruler Verdict"), 0);
}

class RowSinksTest : public testing::Test {
 protected:
  RowSinksTest() {
    Parse(R"({"output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3],
              "Max": 1.5, "Min": -2, "Mean": NaN, "Norm": Infinity, "requires_grad": true}]})",
          &target_);
    Parse(R"({"output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [2, 3],
              "Max": 1.0, "Min": -2, "Mean": 0.5, "Norm": 4.0, "requires_grad": true}]})",
          &golden_);
    DiffOps("F.f.0.forward", target_, "F.f.0.forward", &golden_, {}, &diff_);
    diff_.op = "F.f.0.forward";
  }
  static void Parse(const std::string& text, JsonDoc* doc) { ASSERT_TRUE(ParseJson(text, "op", doc).ok()); }
  /// The cells of the only row, by title.
  std::map<std::string, std::string> Read(const RowSettings& settings, const std::string& name) {
    auto sink = CreateTableSink(settings, dir_.path() + "/" + name, 1);
    EXPECT_TRUE(sink.ok()) << sink.status().message();
    OpBlock block;
    (*sink)->AppendOp(diff_, -1, &block);
    EXPECT_TRUE((*sink)->Take(std::move(block)).ok());
    EXPECT_TRUE((*sink)->Commit().ok());
    std::vector<std::string> titles;
    std::map<std::string, std::string> out;
    const auto take = [&](const std::vector<SheetCell>& cells, bool first) {
      for (size_t i = 0; i < cells.size(); ++i)
        first ? titles.push_back(cells[i].text) : void(out[titles[i]] = cells[i].text);
      return OkStatus();
    };
    const std::string& path = (*sink)->paths()[0];
    EXPECT_TRUE((name.ends_with(".csv") ? ReadCsv(path, take) : ReadXlsx(path, take)).ok());
    return out;
  }
  TempDir dir_;
  JsonDoc target_, golden_;
  OpDiff diff_;
};

TEST_F(RowSinksTest, TableAndWorkbookShowTheSame) {
  auto csv = Read({}, "r.csv");
  auto xlsx = Read({}, "r.xlsx");
  EXPECT_EQ(csv["NPU Name"], "F.f.0.forward.output.0");
  EXPECT_EQ(csv["NPU Tensor Shape"], "[2, 3]");
  EXPECT_EQ(csv["Max diff"], "0.5");
  EXPECT_EQ(csv["MaxRelativeErr"], "50.0%");
  EXPECT_EQ(csv["Min diff"], "0");
  EXPECT_EQ(csv["NPU min"], "-2");
  EXPECT_EQ(csv["NPU mean"], "Nan");
  EXPECT_EQ(csv["NPU l2norm"], " inf") << "a bare inf names a range of cells";
  EXPECT_EQ(csv["Bench l2norm"], "4.0");
  EXPECT_EQ(csv["Requires_grad Consistent"], "True");
  EXPECT_EQ(csv["Result"], "error");
  EXPECT_EQ(xlsx["NPU l2norm"], "inf");
  EXPECT_EQ(xlsx["Bench l2norm"], "4");
  EXPECT_EQ(xlsx["Requires_grad Consistent"], "1");
  for (const char* title : {"NPU l2norm", "Bench l2norm", "Bench max", "Requires_grad Consistent"}) {
    csv.erase(title);
    xlsx.erase(title);
  }
  EXPECT_EQ(csv, xlsx);
}

TEST_F(RowSinksTest, TheRulerColoursItsOwnColumns) {
  RowSettings settings;
  settings.ruler = true;
  diff_.rows[0].verdict = Verdict::kPass;
  const RowColumns columns(settings);
  const auto at = [&](std::string_view title) {
    return static_cast<size_t>(std::find(columns.titles().begin(), columns.titles().end(), title) -
                               columns.titles().begin());
  };
  RowCells row;
  const auto judge = [&](RulerCell cell) {
    diff_.ruler = {cell};
    columns.Fill(diff_, 0, -1, nullptr, &row);
    return row.cells[at("Ruler Verdict")].color;
  };
  using Color = Cell::Color;
  EXPECT_EQ(judge({0.25, 2e4, RulerVerdict::kBug}), Color::kRed);
  EXPECT_EQ(row.cells[at("Ruler Note")].text, "passes the old rule, differs by 25 %");
  EXPECT_EQ(row.cells[at("Ruler Error")].color, Color::kRed);
  EXPECT_EQ(row.cells[at("Result")].color, Color::kNone) << "the column of mindstudio-probe stays as it is";
  EXPECT_EQ(judge({0.01, 3, RulerVerdict::kSuspicious}), Color::kYellow);
  EXPECT_EQ(judge({0.25, 10, RulerVerdict::kInherited}), Color::kClear);
  EXPECT_EQ(row.cells[at("Ruler Note")].text, "");
}

TEST(DisagreementTextTest, SpeaksWhereTheTwoRulesContradict) {
  const double inf = std::numeric_limits<double>::infinity();
  EXPECT_EQ(DisagreementText(Verdict::kPass, {0.25, 9, RulerVerdict::kSuspicious}),
            "passes the old rule, differs by 25 %");
  EXPECT_EQ(DisagreementText(Verdict::kPass, {inf, inf, RulerVerdict::kBug}), "passes the old rule, differs");
  EXPECT_EQ(DisagreementText(Verdict::kError, {0.25, 9, RulerVerdict::kBug}), "");
  EXPECT_EQ(DisagreementText(Verdict::kError, {1e-7, 0.5, RulerVerdict::kRoundOff}),
            "error by the old rule, within rounding");
  EXPECT_EQ(DisagreementText(Verdict::kWarning, {0, 0, RulerVerdict::kBitEqual}), "warning by the old rule, bit-equal");
  EXPECT_EQ(DisagreementText(Verdict::kPass, {1e-7, 0.5, RulerVerdict::kRoundOff}), "");
  EXPECT_EQ(DisagreementText(Verdict::kError, {0.5, 9, RulerVerdict::kInherited}), "");
  EXPECT_EQ(DisagreementText(Verdict::kError, {}), "");
}

TEST_F(RowSinksTest, WithoutAPartnerAllOfTheGoldenSideIsMissing) {
  DiffOps("F.f.0.forward", target_, "", nullptr, {}, &diff_);
  auto row = Read({}, "r.csv");
  for (const char* title : {"Bench Name", "Bench Dtype", "Max diff", "NormRelativeErr", "Bench max"}) {
    EXPECT_EQ(row[title], "N/A") << title;
  }
}

TEST_F(RowSinksTest, TheAnalysisKeepsNumbers) {
  auto json = OpsJson::Create({}, dir_.path() + "/ops.json");
  ASSERT_TRUE(json.ok());
  OpBlock block;
  (*json)->AppendOp(diff_, -1, &block);
  ASSERT_TRUE((*json)->Take(std::move(block)).ok());
  ASSERT_TRUE((*json)->Commit().ok());
  const std::string text = ReadAll((*json)->paths()[0]);
  for (const char* member :
       {"\"NPU max\": 1.5", "\"NPU min\": -2,", "\"NPU mean\": \"Nan\"", "\"NPU l2norm\": Infinity",
        "\"Max diff\": \"0.5\"", "\"MaxRelativeErr\": \"50.0%\"", "\"Requires_grad Consistent\": true",
        "\"Result\": \"\"", "\"state\": \"output\"", "\"api_origin_name\": \"F.f.0.forward\""}) {
    EXPECT_TRUE(Contains(text, member)) << member << " in " << text;
  }
  EXPECT_EQ((*json)->same(), std::vector<bool>{Contains(text, "\"is_same\": true")});
}

}  // namespace
}  // namespace msprobe
