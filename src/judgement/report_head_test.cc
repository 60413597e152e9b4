#include "judgement/report_head.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace msprobe {
namespace {

class ReportHeadTest : public ::testing::Test {
 protected:
  void TearDown() override { std::filesystem::remove(path_); }
  std::optional<ReportHead> Written(std::string_view bytes) {
    std::ofstream(path_, std::ios::binary) << bytes;
    return ReadReportHead(path_);
  }
  const std::string path_ = ::testing::TempDir() + "report_head_test.html";
};

TEST_F(ReportHeadTest, IsReadAsItWasWritten) {
  const std::string page = "<!doctype html><head><meta charset=\"utf-8\" /><title>x</title></head>";
  const auto head = Written(WithReportHead(page, {"doctor", "origin", "a < \"b\"", "分叉"}));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->kind, "doctor");
  EXPECT_EQ(head->outcome, "origin");
  EXPECT_EQ(head->en, "a < \"b\"");
  EXPECT_EQ(head->zh, "分叉");
}

TEST_F(ReportHeadTest, ALongHeadlineIsCutBetweenCharacters) {
  std::string zh;
  for (int i = 0; i < 1000; ++i) zh += "的";
  const auto head = Written(WithReportHead("<meta charset=\"utf-8\">", {"compare", "equal", "", zh}));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->zh.size() % 3, 0U);
  EXPECT_EQ(zh.substr(0, head->zh.size()), head->zh);
}

TEST_F(ReportHeadTest, OtherPagesHaveNone) {
  EXPECT_FALSE(Written("<html><body>msprobe</body></html>"));
  EXPECT_FALSE(Written("<meta name=\"msprobe-report\" content=\"not base64\">"));
  EXPECT_FALSE(Written("<meta name=\"msprobe-report\" content=\""));
  EXPECT_FALSE(ReadReportHead(path_ + ".not"));
}

TEST_F(ReportHeadTest, AnOutcomeThatNobodyKnowsHasNoColour) {
  const auto head = Written(WithReportHead("<meta charset=\"utf-8\">", {"compare", "x\" onload=\"", "a", "b"}));
  ASSERT_TRUE(head);
  EXPECT_EQ(head->outcome, "unknown");
}

}  // namespace
}  // namespace msprobe
