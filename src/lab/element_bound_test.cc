#include "lab/element_bound.h"

#include <gtest/gtest.h>

#include <cmath>
#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "lab/check_process.h"
#include "lab/tolerance.h"
#include "lab/ulp_table.h"

namespace msprobe {
namespace {

/// They stay until the tests end.
template <typename T>
std::string_view BytesOf(const std::vector<T>& values) {
  static std::deque<std::string> kept;
  return kept.emplace_back(reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T));
}

ResultItem Item(const std::vector<float>& ours, const std::vector<double>& truth, double ulps) {
  ResultItem out;
  out.kind = ResultItem::Kind::kTensor;
  out.ours = BytesOf(ours), out.truth = BytesOf(truth), out.ulps = ulps;
  return out;
}

TEST(ElementBoundTest, SmallElementsCountAsMuchAsLargeOnes) {
  const float next = std::nextafter(1e-6F, 1.0F);
  ResultItem item = Item({1000, std::nextafter(next, 1.0F)}, {1000, 1e-6F}, 1);
  const ElementFigures found = JudgeElements(item, DType::kFloat32);
  EXPECT_TRUE(found.bounded);
  EXPECT_DOUBLE_EQ(found.error, 2);
  EXPECT_DOUBLE_EQ(found.limit, 1);
  EXPECT_EQ(HistogramText(found), "2^-20:0/0/1/0/0/0/0 2^8:1/0/0/0/0/0/0");
  // The element's own distance is added to the ulp.
  item.bound = BytesOf(std::vector<float>{0, 1});
  EXPECT_DOUBLE_EQ(JudgeElements(item, DType::kFloat32).error, 2);
  EXPECT_GT(JudgeElements(item, DType::kFloat32).limit, 1e6);
}

TEST(ElementBoundTest, ClassesAreCountedAndNotMeasured) {
  const ResultItem item =
      Item({NAN, INFINITY, 0, 3.4e38F, 1}, {1, 2, 1e-40, 3.5e38, 1}, 1);  // the fourth is near infinity on both sides
  const ElementFigures found = JudgeElements(item, DType::kFloat32);
  EXPECT_EQ(ClassesText(found), "nan 1, inf 1, flushed 1 of 1 subnormal");
  EXPECT_DOUBLE_EQ(found.error, 0);
}

TEST(ElementBoundTest, PartsOfComplexNumbersAreAsLargeAsTheWhole) {
  const ResultItem item = Item({1, 1e-9F}, {1, 0}, 1);
  EXPECT_LT(JudgeElements(item, DType::kComplex64).error, 1);
  EXPECT_GT(JudgeElements(item, DType::kFloat32).error, 1e6);
}

TEST(ElementBoundTest, WhatDoesNotFitHasNoBound) {
  ResultItem item = Item({1, 2}, {1}, 1);
  EXPECT_FALSE(JudgeElements(item, DType::kFloat32).bounded);
  item = Item({1}, {1}, 1);
  item.bound = BytesOf(std::vector<float>{0, 0});
  EXPECT_FALSE(JudgeElements(item, DType::kFloat32).bounded);
}

TEST(UlpTableTest, NamesOfOperatorsAndNamespaces) {
  ASSERT_TRUE(MeasuredBound("__add__", false, DType::kFloat32));
  EXPECT_LT(MeasuredBound("__add__", false, DType::kFloat32)->ulps, 1);
  EXPECT_TRUE(MeasuredBound("special.expm1", false, DType::kBFloat16));
  EXPECT_TRUE(MeasuredBound("tanh_", true, DType::kFloat16));
  EXPECT_FALSE(MeasuredBound("matmul", false, DType::kFloat32));
  EXPECT_FALSE(MeasuredBound("exp", false, DType::kInt8));
}

TEST(ToleranceTest, ShapesAreBounded) {
  EXPECT_EQ(*ParseShape("64x512"), (std::vector<int64_t>{64, 512}));
  for (const char* bad : {"", "x", "4x", "0", "-1", "4x5x", "99999999999999999999", "4 x 5"})
    EXPECT_FALSE(ParseShape(bad).ok()) << bad;
}

}  // namespace
}  // namespace msprobe
