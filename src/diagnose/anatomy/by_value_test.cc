#include "diagnose/anatomy/by_value.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <limits>

namespace msprobe {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

/// Numbers that look like those of a layer: no two alike, around zero, as float32 has them.
std::vector<double> Values(size_t n, double spread = 1) {
  std::vector<double> out;
  double v = 0.37;
  for (size_t i = 0; i < n; ++i) {
    v = std::fmod(v * 997.13 + 0.618, 2.0);
    out.push_back(static_cast<float>((v - 1) * spread));
  }
  return out;
}

Anatomy Of(const std::function<double(double, size_t)>& change, std::vector<double> golden = Values(96),
           const std::vector<int64_t>& shape = {4, 3, 8}, DType dtype = DType::kFloat32, int ranks = 0) {
  std::vector<double> target = golden;
  for (size_t i = 0; i < target.size(); ++i) target[i] = change(golden[i], i);
  const ElementsOf a = ElementsOf::Of(target, shape, dtype), b = ElementsOf::Of(golden, shape, dtype);
  FactorContext context;
  context.ranks = ranks;
  context.dimensions = shape;
  return ExplainByValue(ValuePair(a, b), context);
}

double Rounded(double v) { return static_cast<float>(v); }

TEST(AnatomyByValue, Factor) {
  const Anatomy whole = Of([](double v, size_t) { return Rounded(3 * v); });
  EXPECT_EQ(whole.kind, AnatomyKind::kFactor);
  EXPECT_EQ(whole.number, 3);
  EXPECT_EQ(whole.name, "3");
  EXPECT_EQ(whole.part.axis, -1);
  EXPECT_LE(whole.residual, 2);
  EXPECT_EQ(Of([](double v, size_t) { return v / 8; }).name, "1/8");
  EXPECT_EQ(Of([](double v, size_t) { return v * 65536; }).name, "2^16");
  const Anatomy root = Of([](double v, size_t) { return Rounded(v * std::sqrt(8.0)); });
  EXPECT_EQ(root.name, "sqrt(8)");
  EXPECT_EQ(root.meanings, std::vector<std::string>{"sqrt_of_dimension"});
  const Anatomy ranks = Of([](double v, size_t) { return v * 2; }, Values(96), {4, 3, 8}, DType::kFloat32, 2);
  EXPECT_EQ(ranks.meanings, (std::vector<std::string>{"world_size", "sqrt_of_dimension"}));
  const Anatomy unnamed = Of([](double v, size_t) { return Rounded(1.2345 * v); });
  EXPECT_EQ(unnamed.name, "");
  EXPECT_NEAR(unnamed.number, 1.2345, 1e-6);
}

TEST(AnatomyByValue, FactorInOneEntryOfAnAxis) {
  const Anatomy part = Of([](double v, size_t i) { return i / 24 == 2 ? v * 4 : v; });
  EXPECT_EQ(part.kind, AnatomyKind::kFactor);
  EXPECT_EQ(part.part.axis, 0);
  EXPECT_EQ(part.part.entries, std::vector<int64_t>{2});
}

TEST(AnatomyByValue, WhatOnlyLooksLikeAFactorIsNone) {
  // A constant, where a sum explains it as well; a scalar of few digits; a factor that rounding may be.
  EXPECT_FALSE(Of([](double v, size_t) { return 2 * v; }, std::vector<double>(8, 0.5), {8}).found());
  EXPECT_FALSE(Of([](double v, size_t) { return 2 * v; }, {1.5}, {}).found());
  EXPECT_FALSE(Of([](double v, size_t) { return v * (1 + 1e-5); }).found());
  EXPECT_FALSE(Of([](double v, size_t) { return 1.2345 * v; }, {0.1234567}, {}).found());
  EXPECT_FALSE(Of([](double v, size_t i) { return v * (1 + 0.1 * std::sin(static_cast<double>(i))); }).found());
  // Integers have no factor: ids are not measured.
  EXPECT_FALSE(Of([](double v, size_t) { return 2 * v; }, {1, 2, 3, 4, 5, 6}, {6}, DType::kInt64).found());
}

TEST(AnatomyByValue, AScalarOfManyDigitsHasANamedFactor) {
  EXPECT_EQ(Of([](double v, size_t) { return Rounded(v / 3); }, {Rounded(3.8712345)}, {}).name, "1/3");
}

TEST(AnatomyByValue, Sign) {
  EXPECT_EQ(Of([](double v, size_t) { return -v; }).kind, AnatomyKind::kSign);
  EXPECT_FALSE(Of([](double v, size_t i) { return i % 2 ? v : -v; }).kind == AnatomyKind::kFactor);
}

TEST(AnatomyByValue, Offset) {
  const Anatomy sum = Of([](double v, size_t) { return Rounded(v + 0.25); });
  EXPECT_EQ(sum.kind, AnatomyKind::kOffset);
  EXPECT_NEAR(sum.number, 0.25, 1e-6);
  const Anatomy ids = Of([](double v, size_t) { return v + 1; }, {0, 1, 2, 3, 4, 5, 6, 7, 8}, {9}, DType::kInt64);
  EXPECT_EQ(ids.kind, AnatomyKind::kOffset);
  EXPECT_EQ(ids.number, 1);
  EXPECT_FALSE(Of([](double v, size_t) { return v + 1; }, std::vector<double>(9, 0.125), {9}).found());
}

TEST(AnatomyByValue, Zeros) {
  const Anatomy all = Of([](double, size_t) { return 0.0; });
  EXPECT_EQ(all.kind, AnatomyKind::kZeroed);
  EXPECT_EQ(all.part.axis, -1);
  const Anatomy part = Of([](double v, size_t i) { return i % 8 == 5 ? 0 : v; });
  EXPECT_EQ(part.kind, AnatomyKind::kZeroed);
  EXPECT_EQ(part.part.axis, 2);
  EXPECT_EQ(part.part.entries, std::vector<int64_t>{5});
  EXPECT_FALSE(Of([](double, size_t) { return 0.0; }, std::vector<double>(8, 1), {8}).found());
  // Where half of the golden values are zero, too, nothing is cut off below zero.
  const std::vector<double> padded{-1, -1, -1, -1, 0, 0, 0, 0};
  EXPECT_NE(Of([](double, size_t) { return 0.0; }, padded, {8}).kind, AnatomyKind::kClipped);
  EXPECT_FALSE(Of([](double v, size_t) { return v; }, std::vector<double>(8, 0), {8}).found());
}

TEST(AnatomyByValue, Bounds) {
  const Anatomy relu = Of([](double v, size_t) { return std::max(v, 0.0); });
  EXPECT_EQ(relu.kind, AnatomyKind::kClipped);
  EXPECT_EQ(relu.low, 0);
  EXPECT_TRUE(std::isinf(relu.high));
  const Anatomy both = Of([](double v, size_t) { return std::min(std::max(v, -0.5), 0.5); });
  EXPECT_EQ(both.kind, AnatomyKind::kClipped);
  EXPECT_EQ(both.low, -0.5);
  EXPECT_EQ(both.high, 0.5);
  // One element at the largest value may be anything.
  EXPECT_FALSE(Of([](double v, size_t i) { return i == 7 ? 0.01 : v; }).found());
}

TEST(AnatomyByValue, Dropout) {
  const Anatomy dropped = Of([](double v, size_t i) { return i % 5 == 1 ? 0 : Rounded(v / 0.8); });
  EXPECT_EQ(dropped.kind, AnatomyKind::kDropped);
  EXPECT_NEAR(dropped.number, 1.25, 1e-6);
}

TEST(AnatomyByValue, Grid) {
  const auto coarser = [](double v, int bits) {
    int exponent = 0;
    const double scaled = std::frexp(v, &exponent) * std::ldexp(1, bits);
    return std::ldexp(std::nearbyint(scaled), exponent - bits);
  };
  const Anatomy bf16 = Of([&](double v, size_t) { return coarser(v, 8); });
  EXPECT_EQ(bf16.kind, AnatomyKind::kGrid);
  EXPECT_EQ(bf16.name, "bfloat16");
  EXPECT_LE(bf16.residual, 1);
  EXPECT_EQ(Of([&](double v, size_t) { return coarser(v, 11); }).name, "float16");
  // One element off the grid.
  EXPECT_FALSE(Of([&](double v, size_t i) { return i == 50 ? Rounded(v * 1.001) : coarser(v, 8); }).found());
  // A tensor of bfloat16 lies on its grid anyway.
  EXPECT_FALSE(Of([&](double v, size_t) { return coarser(v, 8); }, Values(96), {4, 3, 8}, DType::kBFloat16).found());
}

TEST(AnatomyByValue, NotFinite) {
  const Anatomy nan = Of([](double v, size_t i) { return i == 3 || i == 11 ? kNan : v; });
  EXPECT_EQ(nan.kind, AnatomyKind::kNotFinite);
  EXPECT_EQ(nan.differing, 2);
  EXPECT_FALSE(Of([](double v, size_t i) { return i == 3 ? kNan : v + 0.1 * static_cast<double>(i); }).found());
}

TEST(AnatomyByValue, RoundingAndNoiseAreNothing) {
  EXPECT_FALSE(Of([](double v, size_t) { return v; }).found());
  EXPECT_FALSE(Of([](double v, size_t i) { return v * (1 + 1e-3 * std::sin(1.0 + static_cast<double>(i))); }).found());
  EXPECT_FALSE(Of([](double, size_t i) { return Values(200)[i + 100]; }).found());
}

/// Masks hold numbers that stand for -inf: the rest is not small beside them.
TEST(AnatomyByValue, HugeNumbersHideNothing) {
  std::vector<double> golden = Values(96);
  for (size_t i = 0; i < 96; i += 3) golden[i] = -3.4028234663852886e38;
  const Anatomy factor = Of([](double v, size_t) { return v < -1e30 ? v : 2 * v; }, golden);
  EXPECT_FALSE(factor.kind == AnatomyKind::kUnexplained && factor.part.axis == 0);
  const ElementsOf a = ElementsOf::Of(golden, {96}), b = ElementsOf::Of(Values(96), {96});
  EXPECT_LT(ValuePair(b, a).rms(), 2);
}

TEST(FactorName, OfNumbersThatHaveNone) {
  EXPECT_EQ(NameFactor(1.2345, 1e-6, {}).text, "");
  // What is known to two digits only is near everything.
  EXPECT_EQ(NameFactor(1001.3, 1e-2, {}).text, "");
  EXPECT_EQ(NameFactor(11.0 / 12, 1e-6, {}).text, "11/12");
  EXPECT_EQ(NameFactor(-2, 1e-6, {}).text, "-2");
  EXPECT_EQ(NameFactor(0, 1e-6, {}).text, "");
}

}  // namespace
}  // namespace msprobe
