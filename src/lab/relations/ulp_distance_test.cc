#include "lab/relations/ulp_distance.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace msprobe {
namespace {

template <typename T>
std::string OwnBytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

TEST(UlpDistance, CountsNeighbours) {
  const float next = std::nextafterf(1.0f, 2.0f);
  UlpDistance d;
  ASSERT_TRUE(MeasureUlp(DType::kFloat32, OwnBytes<float>({1.0f, next, 4.0f}), DType::kFloat32,
                         OwnBytes<float>({1.0f, 1.0f, 4.0f}), &d));
  EXPECT_EQ(d.elements, 3u);
  EXPECT_EQ(d.differ, 1u);
  EXPECT_EQ(d.worst, 1.0);
  EXPECT_EQ(d.of_largest, 0.25);
  UlpDistance more;
  ASSERT_TRUE(MeasureUlp(DType::kInt64, OwnBytes<int64_t>({7, 1}), DType::kInt64, OwnBytes<int64_t>({4, 1}), &more));
  EXPECT_EQ(more.worst, 3.0);
  d.Add(more);
  EXPECT_EQ(d.elements, 5u);
  EXPECT_EQ(d.differ, 2u);
  EXPECT_EQ(d.worst, 3.0);
}

TEST(UlpDistance, KeepsKindsApart) {
  const float nan = std::numeric_limits<float>::quiet_NaN(), inf = std::numeric_limits<float>::infinity();
  UlpDistance d;
  ASSERT_TRUE(MeasureUlp(DType::kFloat32, OwnBytes<float>({nan, 0.0f, inf}), DType::kFloat32,
                         OwnBytes<float>({nan, -0.0f, inf}), &d));
  EXPECT_EQ(d.differ, 0u);
  ASSERT_TRUE(
      MeasureUlp(DType::kFloat32, OwnBytes<float>({nan, inf}), DType::kFloat32, OwnBytes<float>({1, -inf}), &d));
  EXPECT_EQ(d.differ, 2u);
  EXPECT_TRUE(std::isinf(d.worst) && std::isinf(d.of_largest));
}

TEST(UlpDistance, CoarserOfTwoTypes) {
  // 1.0 and 1.0 + 2^-7, a neighbour of bfloat16, which is 2^16 neighbours of float32 away.
  UlpDistance d;
  ASSERT_TRUE(MeasureUlp(DType::kBFloat16, OwnBytes<uint16_t>({0x3F80}), DType::kFloat32,
                         OwnBytes<float>({1.0f + 1.0f / 128}), &d));
  EXPECT_EQ(d.worst, 1.0);
  ASSERT_TRUE(MeasureUlp(DType::kFloat32, OwnBytes<float>({1.0f}), DType::kFloat64,
                         OwnBytes<double>({1.0 + std::ldexp(1.0, -24)}), &d));
  EXPECT_EQ(d.worst, 0.5);
  ASSERT_TRUE(MeasureUlp(DType::kFloat64, OwnBytes<double>({1.0}), DType::kFloat64, OwnBytes<double>({1.0 + 1.0 / 128}),
                         &d, DType::kBFloat16));
  EXPECT_EQ(d.worst, 1.0);
}

TEST(UlpDistance, RefusesWhatDoesNotFit) {
  UlpDistance d;
  EXPECT_FALSE(MeasureUlp(DType::kFloat32, "abc", DType::kFloat32, "abcd", &d));
  EXPECT_FALSE(MeasureUlp(DType::kFloat32, "abcd", DType::kFloat32, "abcdabcd", &d));
  EXPECT_FALSE(MeasureUlp(DType::kUnknown, "", DType::kFloat32, "", &d));
  EXPECT_FALSE(MeasureUlp(DType::kInt64, "abcdabcd", DType::kBool, "a", &d));
}

}  // namespace
}  // namespace msprobe
