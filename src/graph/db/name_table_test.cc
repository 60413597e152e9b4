#include "graph/db/name_table.h"

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

}  // namespace
}  // namespace msprobe
