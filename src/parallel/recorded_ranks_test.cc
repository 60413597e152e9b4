#include "parallel/recorded_ranks.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(OneOfEachPlaceTest, LeavesOutTheCopies) {
  ParallelLayout layout;
  layout.rank_size = 16;
  layout.tp = 2;
  layout.pp = 2;
  EXPECT_EQ(*OneOfEachPlace(layout), (std::vector{0, 1, 8, 9}));
  layout.cp = 2;
  EXPECT_EQ(*OneOfEachPlace(layout), (std::vector{0, 1, 8, 9})) << "context parallel ranks hold the same weights";
  layout.ep = 2;
  EXPECT_EQ(*OneOfEachPlace(layout), (std::vector{0, 1, 4, 5, 8, 9, 12, 13})) << "experts differ";
  layout = {16, 2, 2, 1, 1, 1, "tp-pp-dp", {}};
  EXPECT_EQ(*OneOfEachPlace(layout), (std::vector{0, 1, 2, 3}));
}

TEST(OneOfEachPlaceTest, SaysWhatCannotBe) {
  ParallelLayout layout;
  layout.rank_size = 10;
  layout.tp = 4;
  EXPECT_EQ(OneOfEachPlace(layout).status().code(), Code::kUsage);
}

}  // namespace
}  // namespace msprobe
