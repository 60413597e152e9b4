#include "view/query/label.h"

#include <gtest/gtest.h>

namespace msprobe::view {
namespace {

TEST(Label, Modules) {
  EXPECT_EQ(ShortLabel("Module.blocks.1.fc2.Linear.forward.0", true, false), "fc2.Linear.forward.0");
  EXPECT_EQ(ShortLabel("Module.model.layers.0.Block.forward.0", true, false), "layers.0.Block.forward.0");
  EXPECT_EQ(ShortLabel("DefaultModel", true, false), "DefaultModel");
}

TEST(Label, Operators) {
  EXPECT_EQ(ShortLabel("Functional.linear.3.forward", false, false), "linear.3.forward");
  EXPECT_EQ(ShortLabel("Apis_Between_Modules.0", false, false), "Apis_Between_Modules.0");
  EXPECT_EQ(ShortLabel("Torch.x_rank1.Y.forward", false, false), "Y.forward");
}

TEST(Label, ChildrenOfTheRootKeepTheirName) {
  EXPECT_EQ(ShortLabel("Module.blocks.1.fc2.Linear.forward.0", true, true), "Module.blocks.1.fc2.Linear.forward.0");
}

TEST(Label, OddNames) {
  EXPECT_EQ(ShortLabel("", true, false), "");
  EXPECT_EQ(ShortLabel("....", true, false), "...");
  EXPECT_EQ(ShortLabel(".", false, false), ".");
}

}  // namespace
}  // namespace msprobe::view
