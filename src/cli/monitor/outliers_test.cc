#include "cli/monitor/outliers.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace msprobe {
namespace {

TEST(OutliersTest, OneThatStandsOutOfItsNeighbours) {
  EXPECT_EQ(OutOfLine({2, 2.1f, 2, 2.2f, 3.4f, 2, 2.1f, 2}), (std::vector<int>{0, 0, 0, 0, 1, 0, 0, 0}));
  EXPECT_EQ(OutOfLine({2, 2.1f, 2, 0.5f, 2, 2.1f, 2}), (std::vector<int>{0, 0, 0, -1, 0, 0, 0}));
  EXPECT_EQ(OutOfLine({2, 2.1f, 2, 2, 9}), (std::vector<int>{0, 0, 0, 0, 1}));
}

TEST(OutliersTest, WhatFallsOrStepsOrIsNoNumberDoesNot) {
  EXPECT_EQ(OutOfLine({4.2f, 3.4f, 3, 2.8f, 2.7f, 2.6f}), std::vector<int>(6, 0));
  EXPECT_EQ(OutOfLine({1, 1, 1, 1, 3, 3, 3, 3}), std::vector<int>(8, 0));
  EXPECT_EQ(OutOfLine({1, 1, NAN, 1, -1, 1, std::numeric_limits<float>::infinity()}), std::vector<int>(7, 0));
  EXPECT_TRUE(OutOfLine({}).empty());
}

}  // namespace
}  // namespace msprobe
