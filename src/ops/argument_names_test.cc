#include "ops/argument_names.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(ArgumentNames, ThoseOfThePlace) {
  EXPECT_EQ(ArgumentName("group_norm", ".input.1"), "num_groups");
  EXPECT_EQ(ArgumentName("embedding_bag", ".input.6"), "mode");
  EXPECT_EQ(ArgumentName("batch_norm", ".input.5"), "training");
}

TEST(ArgumentNames, NoneWhereThereIsNone) {
  EXPECT_EQ(ArgumentName("group_norm", ".input.0"), "");
  EXPECT_EQ(ArgumentName("group_norm", ".input.eps"), "");
  EXPECT_EQ(ArgumentName("group_norm", ".input.99"), "");
  EXPECT_EQ(ArgumentName("group_norm", ".input.0.1"), "");
  EXPECT_EQ(ArgumentName("group_norm", ".output.0"), "");
  EXPECT_EQ(ArgumentName("no_such_function", ".input.1"), "");
}

}  // namespace
}  // namespace msprobe
