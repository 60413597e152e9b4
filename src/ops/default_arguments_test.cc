#include "ops/default_arguments.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(DefaultArguments, ByPlaceAndByName) {
  const DefaultArgument* named = FindDefaultArgument("scaled_dot_product_attention", ".input.dropout_p");
  ASSERT_TRUE(named);
  EXPECT_EQ(FindDefaultArgument("scaled_dot_product_attention", ".input.4"), named);
  EXPECT_TRUE(IsDefaultValue(*named, "0.0") && IsDefaultValue(*named, "0"));
  EXPECT_FALSE(IsDefaultValue(*named, "0.1") || IsDefaultValue(*named, "False"));
  EXPECT_FALSE(FindDefaultArgument("scaled_dot_product_attention", ".input.0")) << "the query has no default";
  EXPECT_FALSE(FindDefaultArgument("scaled_dot_product_attention", ".output.0"));
  EXPECT_FALSE(FindDefaultArgument("no_function", ".input.1"));
  const DefaultArgument* text = FindDefaultArgument("cross_entropy", ".input.reduction");
  ASSERT_TRUE(text);
  EXPECT_TRUE(IsDefaultValue(*text, "mean"));
  EXPECT_FALSE(IsDefaultValue(*text, "sum"));
}

}  // namespace
}  // namespace msprobe
