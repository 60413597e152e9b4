#include "compare/describe/six_digits.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(SixDigits, NumbersForPeopleHaveSixDigits) {
  EXPECT_EQ(SixDigits("12.650000000000001"), "12.65");
  EXPECT_EQ(SixDigits("-5.301337138571699e-07"), "-5.30134e-07");
  EXPECT_EQ(SixDigits("inf"), "inf");
  EXPECT_EQ(SixDigits("16777217"), "16777217") << "integers are exact";
  EXPECT_EQ(SixDigits("[2.5, 3]"), "[2.5, 3]");
  EXPECT_EQ(SixDigits(""), "");
}

}  // namespace
}  // namespace msprobe
