#include "judge/run_sources.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "judge/judge_directory.h"
#include "monitor/series_writer.h"

namespace msprobe {
namespace {

class RunSourcesTest : public testing::Test {
 protected:
  void SetUp() override {
    base_ = std::filesystem::path(testing::TempDir()) / testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::remove_all(base_);
  }

  // A directory of a rank with these steps; `started` of 0: without a heartbeat.
  void Add(const std::string& name, int64_t from, int64_t to, int started) {
    std::filesystem::create_directories(base_ / name);
    SeriesWriter writer;
    ASSERT_TRUE(writer.Open((base_ / name / "monitor.series").string()).ok());
    writer.AddTable("loss", std::vector<std::string>{"loss"}, false);
    writer.AddSeries(std::vector<SeriesName>{{0, 0, "loss", -1}});
    for (int64_t s = from; s < to; ++s) {
      writer.AddValues(s, 0, std::vector<uint32_t>{0}, std::vector<double>{1 + 0.01 * static_cast<double>(s % 7)});
    }
    ASSERT_TRUE(writer.Flush().ok());
    writer.Close();
    if (started == 0) return;
    std::ofstream(base_ / name / "heartbeat.json")
        << R"({"rank": 0, "state": "ended", "step": 1, "interval": 1, "started": )" << started << "}";
  }

  JudgedDirectory Judged() const {
    JudgeRequest request;
    request.directory = base_.string();
    auto judged = JudgeDirectory(request);
    EXPECT_TRUE(judged.ok());
    return std::move(*judged);
  }

  std::filesystem::path base_;
};

TEST_F(RunSourcesTest, AResumedRunIsOneWithTheRunBefore) {
  Add("Nov25_10-00-00-rank0-00000001", 0, 100, 10);
  Add("Nov25_11-00-00-rank0-00000002", 80, 180, 20);  // from the checkpoint of step 80
  Add("Nov25_12-00-00-rank0-00000003", 180, 240, 30);
  const JudgedDirectory judged = Judged();
  EXPECT_EQ(judged.steps, 240);
  EXPECT_TRUE(judged.left_out.empty());
  EXPECT_NE(JudgementText(judged).English().find("2 directories go on from others"), std::string::npos);
  const auto run = OpenRunSources(base_.string());
  ASSERT_TRUE(run.ok());
  EXPECT_EQ(run->sources[0].until, 80);
  EXPECT_EQ(PlacesInOrder(run->sources).size(), 240U);
}

TEST_F(RunSourcesTest, AnEarlierRunIsNamed) {
  Add("Nov25_10-00-00-rank0-00000001", 0, 100, 10);
  Add("Nov25_11-00-00-rank0-00000002", 0, 60, 20);
  const JudgedDirectory judged = Judged();
  EXPECT_EQ(judged.steps, 60);
  EXPECT_EQ(judged.left_out, std::vector<std::string>{"Nov25_10-00-00-rank0-00000001"});
  EXPECT_NE(JudgementText(judged).English().find("earlier runs are left out: Nov25_10-00-00-rank0-00000001"),
            std::string::npos);
}

TEST_F(RunSourcesTest, WithoutHeartbeatsAllAreOneRun) {
  Add("a-rank0-1", 0, 100, 0);
  Add("b-rank0-2", 100, 150, 0);
  EXPECT_EQ(Judged().steps, 150);
}

}  // namespace
}  // namespace msprobe
