#include "dump/rank_choice.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(RankChoiceTest, TakesNumbersAndRanges) {
  const auto choice = RankChoice::Read("0,3, 8-15");
  ASSERT_TRUE(choice.ok());
  for (const int rank : {0, 3, 8, 15}) EXPECT_TRUE(choice->Holds(rank)) << rank;
  for (const int rank : {-1, 1, 7, 16}) EXPECT_FALSE(choice->Holds(rank)) << rank;
}

TEST(RankChoiceTest, NothingIsAll) {
  const auto choice = RankChoice::Read("");
  ASSERT_TRUE(choice.ok());
  EXPECT_TRUE(choice->all());
  EXPECT_TRUE(choice->Holds(-1));
}

TEST(RankChoiceTest, SaysWhatIsNoRank) {
  for (const char* text : {"a", "1,", "5-3", "-1", "1-", "99999999999"}) {
    EXPECT_EQ(RankChoice::Read(text).status().code(), Code::kUsage) << text;
  }
}

TEST(RankChoiceTest, LeavesTheChosenRanksOfEachStep) {
  DumpPath path;
  path.steps = {{"/d/step0", "step0", 0, {{"/d/step0/rank0", "rank0", 0}, {"/d/step0/rank1", "rank1", 1}}},
                {"/d/step1", "step1", 1, {{"/d/step1/rank0", "rank0", 0}}}};
  ASSERT_TRUE(RankChoice::Read("1")->Apply(&path).ok());
  ASSERT_EQ(path.steps.size(), 1u);
  EXPECT_EQ(path.steps[0].ranks.at(0).name, "rank1");
  EXPECT_EQ(RankChoice::Read("7")->Apply(&path).code(), Code::kUsage);
}

}  // namespace
}  // namespace msprobe
