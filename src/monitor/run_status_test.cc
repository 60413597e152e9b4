#include "monitor/run_status.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>

#include "base/file.h"
#include "base/temp_directory.h"

namespace msprobe {
namespace {

class RunStatusTest : public testing::Test {
 protected:
  void SetUp() override {
    auto made = TempDirectory::Create(testing::TempDir(), "monitor");
    ASSERT_TRUE(made.ok());
    directory_ = std::make_unique<TempDirectory>(std::move(*made));
  }
  void Beat(const std::string& name, const std::string& text) {
    const std::string place = JoinPath(directory_->path(), name);
    ASSERT_EQ(mkdir(place.c_str(), 0750), 0);
    std::ofstream(JoinPath(place, "heartbeat.json")) << text;
  }
  std::unique_ptr<TempDirectory> directory_;
};

TEST_F(RunStatusTest, TellsWhoHangsFallsBehindAndIsSilent) {
  Beat("a-rank0-1",
       R"({"rank": 0, "state": "running", "step": 9, "beat": 1000, "started": 1, "requested": 2, "reported": 2})");
  Beat("b-rank1-1",
       R"({"rank": 1, "state": "running", "step": 5, "beat": 900, "started": 1, "requested": 2, "reported": 1,
                       "laws": ["law clip broken from step 3 on: too large"],
                       "silent": ["actv 0:fc: nothing arrived"]})");
  Beat("b-rank1-0", R"({"rank": 1, "state": "ended", "step": 99, "beat": 10, "started": 0})");  // an earlier run
  const auto run = ReadRunStatus(directory_->path(), 1001);
  ASSERT_TRUE(run.ok());
  ASSERT_EQ(run->ranks.size(), 2u);
  EXPECT_TRUE(run->ranks[0].findings.empty());
  ASSERT_EQ(run->ranks[1].findings.size(), 4u);
  EXPECT_EQ(run->ranks[1].findings[0].English(), "no heartbeat for 101 s: it hangs, or its machine does");
  EXPECT_EQ(run->ranks[1].findings[1].English(), "4 steps behind the farthest rank");
  EXPECT_EQ(run->ranks[1].findings[2].English(), "law clip broken from step 3 on: too large");
  EXPECT_NE(RunStatusJson(*run, 1001).find("\"laws\": ["), std::string::npos);
  EXPECT_EQ(run->ranks[1].findings[3].English(), "1 of 2 series without a value");
  EXPECT_NE(RunStatusText(*run, 1001).English().find("actv 0:fc"), std::string::npos);
}

TEST_F(RunStatusTest, RefusesWhatIsNoMonitorsOutput) {
  EXPECT_EQ(ReadRunStatus(directory_->path(), 0).status().code(), Code::kBadInput);
  Beat("x", "[]");
  EXPECT_EQ(ReadRunStatus(directory_->path(), 0).status().code(), Code::kBadInput);
}

}  // namespace
}  // namespace msprobe
