#include "graph/name_table.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(NameTable, GivesEachNameOneNumber) {
  NameTable names;
  bool fresh = false;
  for (int round = 0; round < 2; ++round) {
    for (uint32_t i = 0; i < 5000; ++i) {
      EXPECT_EQ(names.Add("Torch.x." + std::to_string(i) + ".forward", &fresh), i);
      EXPECT_EQ(fresh, round == 0);
    }
  }
  EXPECT_EQ(names.size(), 5000u);
  EXPECT_EQ(names[0], "Torch.x.0.forward");
  EXPECT_EQ(names[4999], "Torch.x.4999.forward");
  EXPECT_EQ(names.Add("", &fresh), 5000u);
  EXPECT_TRUE(fresh);
  EXPECT_EQ(names[5000], "");
}

TEST(NameIndex, KeepsTheFirstNumberOfAName) {
  std::vector<std::string> names;
  for (int i = 0; i < 3000; ++i) names.push_back("Module." + std::to_string(i));
  NameIndex index;
  for (uint32_t i = 0; i < names.size(); ++i) index.Add(names[i], i);
  index.Add(names[7], 99);
  for (uint32_t i = 0; i < names.size(); ++i) EXPECT_EQ(index.Find(std::string(names[i])), i);
  EXPECT_EQ(index.Find("Module"), NameIndex::kNone);
}

}  // namespace
}  // namespace msprobe
