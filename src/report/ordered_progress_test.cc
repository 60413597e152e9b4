#include "report/ordered_progress.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(OrderedProgress, TellInTheOrderOfThePairs) {
  std::vector<FilePair> pairs(4);
  for (size_t i = 0; i < pairs.size(); ++i) pairs[i].label = "rank" + std::to_string(i);
  std::vector<std::string> told;
  CompareSettings settings;
  settings.early = [&](const std::string& pair, const Message& text) { told.push_back(pair + " " + text.English()); };
  settings.progress = [&](const std::string& pair, double) { told.push_back(pair); };
  OrderedProgress voices(settings, pairs);
  voices.Early(2, Message("c"));
  voices.Progress(1, 0.5);
  EXPECT_TRUE(told.empty());
  voices.Progress(0, 0.5);
  EXPECT_EQ(told, (std::vector<std::string>{"rank0"}));
  voices.Ended(0);  // agrees
  voices.Ended(2);
  EXPECT_EQ(told.size(), 1u);
  voices.Early(1, Message("b"));
  EXPECT_EQ(told, (std::vector<std::string>{"rank0", "rank1 b", "rank2 c"}));
  voices.Ended(1);
  voices.Progress(3, 0.5);
  voices.Early(3, Message("d"));
  EXPECT_EQ(told, (std::vector<std::string>{"rank0", "rank1 b", "rank2 c", "rank3", "rank3 d"}));
}

}  // namespace
}  // namespace msprobe
