#include "base/words/times_text.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(TimesText, TimesAreWrittenAsPeopleDo) {
  EXPECT_EQ(TimesText(1.25, 3), "1.25");
  EXPECT_EQ(TimesText(999.6, 3), "1,000");
  EXPECT_EQ(TimesText(894, 1), "900");
  EXPECT_EQ(TimesText(21345, 2), "21,000");
  EXPECT_EQ(TimesText(1234567, 3), "1,230,000");
  EXPECT_EQ(TimesText(8.1e9, 2), "8.1e+09");
  EXPECT_EQ(TimesText(0.004, 2), "0.004");
}

}  // namespace
}  // namespace msprobe
