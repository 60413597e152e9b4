#include "lowp/formats/scaled_format.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

namespace msprobe {
namespace {

constexpr float kInf = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

float Cast(const char* name, float v, CastRules rules = {}, CastCounts* counts = nullptr) {
  CastCounts own;
  float out = 0;
  CastNumbers(*FindNumberFormat(name), rules, &v, 1, 1, &out, counts != nullptr ? counts : &own);
  return out;
}

TEST(NumberFormat, TiesGoToTheEvenNumber) {
  EXPECT_EQ(Cast("e2m1", 0.25F), 0);
  EXPECT_EQ(Cast("e2m1", 0.75F), 1);
  EXPECT_EQ(Cast("e2m1", 2.5F), 2);
  EXPECT_EQ(Cast("e2m1", -5), -4);
  EXPECT_EQ(Cast("int8", 2.5F), 2);
  EXPECT_EQ(Cast("e4m3", 0x1.1p-6F), 0x1.0p-6F);
  EXPECT_EQ(Cast("e4m3", 0x3p-10F), 0x1p-8F);  // between 1 and 2 steps below the smallest normal number
}

TEST(NumberFormat, BeyondTheLargestNumber) {
  const CastRules plain{.saturate = false};
  EXPECT_EQ(Cast("e4m3", 1e9F), 448);
  EXPECT_EQ(Cast("e4m3", 464, plain), 448);
  EXPECT_TRUE(std::isnan(Cast("e4m3", 464.1F, plain)));
  EXPECT_EQ(Cast("e5m2", -61440, plain), -kInf);
  EXPECT_EQ(Cast("e5m2", -kInf), -57344);
  EXPECT_TRUE(std::isnan(Cast("e5m2", kNan)));
  EXPECT_TRUE(std::signbit(Cast("e2m1", -0.1F)));
}

TEST(NumberFormat, CountsWhatIsLost) {
  CastCounts counts;
  for (const float v : {500.0F, 1e-9F, 0.0F, kNan, kInf, 1.0F}) Cast("e4m3", v, {}, &counts);
  EXPECT_EQ(counts.saturated, 2U);
  EXPECT_EQ(counts.to_zero, 1U);
  EXPECT_EQ(counts.not_finite, 2U);
}

TEST(ScaledFormat, ANumberThatIsNotFiniteDoesNotSetTheScale) {
  DenseMatrix in(1, 32), out;
  in.values[0] = kInf, in.values[1] = kNan, in.values[2] = 3;
  const float largest = LargestMagnitude(in.values.data(), 32);
  EXPECT_EQ(largest, 3);
  for (const char* name : {"e4m3", "mxfp8", "nvfp4", "e4m3:row", "e4m3:128x128"}) {
    const StoredCounts counts = StoreAndRead(*ParseScaledFormat(name), {}, largest, in, &out);
    EXPECT_NEAR(out.values[2], 3, 0.01) << name;
    EXPECT_EQ(counts.casts.not_finite, 2U) << name;
    EXPECT_LT(counts.Error(), 0.01) << name;
  }
}

TEST(ScaledFormat, TilesAreNotRows) {
  DenseMatrix in(130, 129), out;
  in.values[0] = 448000, in.Row(1)[1] = 1, in.Row(129)[1] = 1, in.Row(1)[128] = 1;
  StoreAndRead(*ParseScaledFormat("e4m3:128x128"), {}, 448000, in, &out);
  EXPECT_NEAR(out.Row(1)[1], 0x1p-9F * 1000, 1e-5);  // one step of the first square
  EXPECT_EQ(out.Row(129)[1], 1);
  EXPECT_EQ(out.Row(1)[128], 1);
}

TEST(ScaledFormat, NamesAreParsed) {
  for (const char* name : {"e4m3", "e5m2:row", "int8:32", "e2m1:16", "e4m3:delayed", "mxfp6_e3m2", "nvfp4", "bf16"})
    EXPECT_TRUE(ParseScaledFormat(name).ok()) << name;
  for (const char* name : {"", "e4m3:", "bf16:row", "mxfp8:row", "e4m3:64", "e9m9"})
    EXPECT_EQ(ParseScaledFormat(name).status().code(), Code::kUsage) << name;
}

TEST(DenseMatrix, Transposes) {
  DenseMatrix in(33, 70);
  for (size_t i = 0; i < in.values.size(); ++i) in.values[i] = static_cast<float>(i);
  const DenseMatrix out = in.Transposed();
  ASSERT_EQ(out.rows, 70);
  for (int64_t r = 0; r < 33; ++r)
    for (int64_t c = 0; c < 70; ++c) ASSERT_EQ(out.Row(c)[r], in.Row(r)[c]);
}

}  // namespace
}  // namespace msprobe
