#include "ops/first_argument.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(FirstArgument, IsReplacedOrReadOrNot) {
  EXPECT_EQ(FirstArgumentOf("copy_"), FirstArgument::kReplaced);
  EXPECT_EQ(FirstArgumentOf("baddbmm"), FirstArgument::kReadUnlessNoBeta);
  EXPECT_EQ(FirstArgumentOf("addmm_"), FirstArgument::kReadUnlessNoBeta);
  for (const char* api : {"add_", "copy", "mul", "", "_"}) EXPECT_EQ(FirstArgumentOf(api), FirstArgument::kRead) << api;
}

}  // namespace
}  // namespace msprobe
