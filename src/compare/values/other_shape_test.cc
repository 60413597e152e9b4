#include "compare/values/other_shape.h"

#include <gtest/gtest.h>

namespace msprobe {
namespace {

OtherShape Of(std::vector<int64_t> a, std::vector<int64_t> b, bool transposes = false) {
  EXPECT_EQ(CompareShapes(a, b, transposes), CompareShapes(b, a, transposes));
  return CompareShapes(a, b, transposes);
}

TEST(OtherShape, Kinds) {
  EXPECT_EQ(Of({2, 1, 3}, {2, 3}), OtherShape::kSame);
  EXPECT_EQ(Of({2, 8, 32}, {16, 32}), OtherShape::kRegrouped);
  EXPECT_EQ(Of({2, 3, 4, 5}, {6, 20}), OtherShape::kRegrouped);
  EXPECT_EQ(Of({2, 8, 4}, {8, 2, 4}), OtherShape::kNone) << "exchanged dimensions are another output";
  EXPECT_EQ(Of({4, 8}, {8, 4}), OtherShape::kNone);
  EXPECT_EQ(Of({4, 8}, {8, 4}, true), OtherShape::kTransposed);
  EXPECT_EQ(Of({2, 3, 4, 8}, {2, 3, 8, 4}, true), OtherShape::kTransposed);
  EXPECT_EQ(Of({2, 3, 4, 8}, {3, 2, 8, 4}, true), OtherShape::kNone);
  EXPECT_EQ(Of({4, 8}, {32}, true), OtherShape::kRegrouped);
  EXPECT_EQ(Of({}, {1}), OtherShape::kSame);
  EXPECT_EQ(Of({0, 4}, {0}), OtherShape::kNone);
  EXPECT_EQ(Of({INT64_MAX, 2, 2}, {4}), OtherShape::kNone);
}

}  // namespace
}  // namespace msprobe
