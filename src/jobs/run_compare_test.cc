#include "jobs/run_compare.h"

#include <gtest/gtest.h>

#include "base/big_array.h"
#include "base/file.h"
#include "base/parallel.h"
#include "base/text.h"
#include "dump/test_files.h"
#include "jobs/pair_job.h"
#include "json/parser.h"

namespace msprobe {
namespace {

class RunCompareTest : public testing::Test {
 protected:
  void Dump(const std::string& name, const std::string& value, const std::string& task = "statistics") {
    const std::string leaf = R"([{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], "Max": )" + value +
                             R"(, "Min": 1.0, "Mean": 1.0, "Norm": )" + value + "}]";
    dir_.Write(
        name,
        R"({"task": ")" + task +
            R"(", "level": "L1", "framework": "pytorch", "data": {"F.x.0.forward": {"input_args": [], "output": )" +
            leaf + "}}}");
  }
  CompareSettings Request(const std::string& target, const std::string& golden) {
    CompareSettings request;
    request.target = dir_.path() + "/" + target;
    request.golden = dir_.path() + "/" + golden;
    request.output = dir_.path() + "/out/deep";
    return request;
  }
  TempDir dir_;
};

TEST_F(RunCompareTest, ReportsEachRank) {
  for (const char* rank : {"rank0", "rank1"}) {
    Dump(std::string("t/") + rank + "/dump.json", "2.0");
    Dump(std::string("g/") + rank + "/dump.json", "1.0");
  }
  const auto report = RunCompare(Request("t", "g"));
  ASSERT_TRUE(report.ok()) << report.status().message();
  ASSERT_EQ(report->pairs.size(), 2u);
  EXPECT_TRUE(Contains(report->pairs[1].paths[0], "/out/deep/compare_result_rank1_20"));
  EXPECT_EQ(report->pairs[0].counts.error, 1u);
  const Message text = SummaryText(*report);
  EXPECT_TRUE(Contains(text, "first difference: F.x.0.forward: output.0 Norm differs by 100 %")) << text.English();
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(SummaryJson(*report), "summary", &doc).ok());
  EXPECT_EQ(doc["pairs"][0]["first_difference"]["op"].Text(), "F.x.0.forward");
  EXPECT_TRUE(doc["pairs"][0]["earlier_input_difference"].IsNull());
  EXPECT_EQ(doc["pairs"][1]["error"].Int32(), 1);
}

TEST_F(RunCompareTest, ABadRankDoesNotHideTheOthers) {
  Dump("t/rank0/dump.json", "1.0");
  Dump("g/rank0/dump.json", "1.0");
  dir_.Write("t/rank1/dump.json", "not json");
  Dump("g/rank1/dump.json", "1.0");
  const auto report = RunCompare(Request("t", "g"));
  ASSERT_TRUE(report.ok()) << report.status().message();
  EXPECT_EQ(report->pairs.size(), 1u);
  ASSERT_EQ(report->failures.size(), 1u);
  EXPECT_EQ(report->failures[0].first, "rank1");
  EXPECT_TRUE(Contains(SummaryText(*report), "rank1\n  not compared: "));
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(SummaryJson(*report), "summary", &doc).ok());
  EXPECT_EQ(doc["failures"][0]["label"].Text(), "rank1");
}

TEST_F(RunCompareTest, IsTheSameForAnyNumberOfThreads) {
  for (int rank = 0; rank < 7; ++rank) {
    const std::string name = "/rank" + std::to_string(rank) + "/dump.json";
    Dump("t" + name, std::to_string(rank) + ".5");
    Dump("g" + name, "1.0");
  }
  dir_.Write("t/rank2/dump.json", "not json");
  std::string expected;
  for (const int threads : {1, 2, 5, 16}) {
    SetThreadCount(threads);
    CompareSettings request = Request("t", "g");
    request.output += std::to_string(threads);
    const auto report = RunCompare(request);
    ASSERT_TRUE(report.ok()) << report.status().message();
    ASSERT_EQ(report->pairs.size(), 6u);
    std::string all;
    for (const PairReport& pair : report->pairs) {
      const auto file = MappedFile::Open(pair.paths.at(0));
      ASSERT_TRUE(file.ok());
      all +=
          pair.files.label + "\n" + std::string(file->text()) + DifferenceLine(pair.differences.first).English() + "\n";
    }
    all += report->failures.at(0).first + " " + report->failures[0].second.message() +
           StoryText(report->story, Language::kEnglish);
    if (expected.empty()) expected = all;
    EXPECT_EQ(all, expected) << threads;
  }
  SetThreadCount(0);
}

TEST_F(RunCompareTest, FailsWhenNoPairCanBeCompared) {
  Dump("t/rank0/dump.json", "1.0", "structure");
  Dump("g/rank0/dump.json", "1.0");
  EXPECT_EQ(RunCompare(Request("t", "g")).status().code(), Code::kBadInput);
}

TEST_F(RunCompareTest, PlanIsJsonAndWritesNothing) {
  Dump("t/dump.json", "1.0");
  Dump("g/dump.json", "1.0");
  const auto plan = PlanCompare(Request("t/dump.json", "g/dump.json"));
  ASSERT_TRUE(plan.ok());
  JsonDoc doc;
  ASSERT_TRUE(ParseJson(*plan, "plan", &doc).ok()) << *plan;
  EXPECT_EQ(doc["matches"][0]["matched"].Int32(), 1);
  EXPECT_FALSE(std::filesystem::exists(dir_.path() + "/out"));
}

/// Two runs of so many ops that their index does not stay on the heap; they part in the middle.
std::string ManyOps(bool target) {
  constexpr int kOps = 40'000;
  std::string out = R"({"task": "statistics", "level": "L1", "framework": "pytorch", "data": {)";
  for (int i = 0; i < kOps; ++i) {
    if (target && i == kOps / 2) continue;
    const std::string value = target && i > kOps / 3 ? "2.5" : "1.5";
    out +=
        (i ? ", \"F.x" : "\"F.x") + std::to_string(i % 50) + "." + std::to_string(i / 50) +
        R"(.forward": {"input_args": [], "output": [{"type": "torch.Tensor", "dtype": "torch.float32", "shape": [1], )"
        R"("Max": )" +
        value + R"(, "Min": 1.0, "Mean": 1.0, "Norm": )" + value + "}]}";
  }
  return out + "}}";
}

TEST_F(RunCompareTest, WhatDoesNotFitMemoryGivesTheSameResult) {
  dir_.Write("t/dump.json", ManyOps(true));
  dir_.Write("g/dump.json", ManyOps(false));
  std::vector<std::string> results;
  for (const size_t bound : {size_t{1} << 40, size_t{0}}) {
    const size_t before = SetBigArrayMemory(bound);
    const auto report = RunCompare(Request("t/dump.json", "g/dump.json"));
    SetBigArrayMemory(before);
    ASSERT_TRUE(report.ok()) << report.status().message();
    EXPECT_EQ(report->pairs[0].golden_only_ops, 1u);
    results.push_back(ReadAll(report->pairs[0].paths[0]));
    EXPECT_GT(results.back().size(), 1'000'000u);
  }
  EXPECT_EQ(results[0], results[1]);
  EXPECT_EQ(UseOfBigArrays().files, 0u);
}

TEST(PlanPassesTest, AReplayNeedsAPassOfItsOwnBefore) {
  CompareSettings settings;
  settings.html = true;
  EXPECT_EQ(PassesJson(PlanPasses(settings)),
            R"([{"rows": "table", "speaks": true, "watches": true, "logs": false, "replays": 0}])");
  settings.replay = 20;
  EXPECT_EQ(PassesJson(PlanPasses(settings)),
            R"([{"rows": "none", "speaks": true, "watches": false, "logs": false, "replays": 20}, )"
            R"({"rows": "table", "speaks": false, "watches": true, "logs": false, "replays": 0}])");
  settings.diff_analyze = true;
  settings.replay = 0;
  settings.html = false;
  EXPECT_EQ(PassesJson(PlanPasses(settings)),
            R"([{"rows": "analysis", "speaks": true, "watches": false, "logs": false, "replays": 0}])");
}

}  // namespace
}  // namespace msprobe
