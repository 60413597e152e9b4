#include "base/wildcard.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

TEST(Wildcard, StarsStandForAnythingAndQuestionMarksForOne) {
  EXPECT_TRUE(MatchesWildcard("layers.12.mlp", "layers.*.mlp"));
  EXPECT_TRUE(MatchesWildcard("Llama-7B", "*7?"));
  EXPECT_TRUE(MatchesWildcard("", "**"));
  EXPECT_TRUE(MatchesWildcard("a*b", "a*b"));
  EXPECT_FALSE(MatchesWildcard("layers.12.mlp.up", "layers.*.mlp"));
  EXPECT_FALSE(MatchesWildcard("", "?"));
  EXPECT_FALSE(MatchesWildcard("aaab", "*a?a"));
}

}  // namespace
}  // namespace msprobe
