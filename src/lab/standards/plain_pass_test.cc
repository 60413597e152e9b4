#include "lab/standards/plain_pass.h"

#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "lab/standards/measures.h"

namespace msprobe {
namespace {

/// Results of float32 or bfloat16, with zeros and small ones among them.
ResultPair DrawnPair(size_t count, DType dtype, unsigned seed) {
  std::mt19937 random(seed);
  std::normal_distribution<double> normal;
  const bool single = dtype == DType::kFloat32;
  const double scale = std::ldexp(1.0, static_cast<int>(seed % 5) * 6 - 20);
  ResultPair out;
  out.device.dtype = dtype;
  out.bench.dtype = single ? DType::kFloat64 : DType::kFloat32;
  for (size_t i = 0; i < count; ++i) {
    const double value = random() % 50 == 0 ? 0 : normal(random) * scale;
    const double bench = RoundTo(out.bench.width(), value);
    const double error = 1 + normal(random) * (single ? 1e-7 : 1e-3);
    out.bench.values.push_back(bench);
    out.device.values.push_back(random() % 4 == 0 ? bench : static_cast<double>(static_cast<float>(bench * error)));
  }
  return out;
}

std::string TextOf(const FigureRow& row) {
  std::string out;
  for (const LabFigure& figure : row.all()) out += figure.Text() + ";";
  return out;
}

TEST(PlainPassTest, FiguresAreThoseOfTheStandard) {
  unsigned seed = 0;
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    for (const size_t count : {1, 3, 7, 8, 9, 100, 128, 129, 257, 1000, 1025, 4099}) {
      const ResultPair pair = DrawnPair(count, dtype, ++seed);
      FigureRow row, expected;
      LargestValues largest;
      ASSERT_TRUE(MeasureBenchmarkAtOnce(pair, &row, &largest));
      const ResultErrors errors(pair);
      MeasureByStandard(Standard::kBenchmark, errors, &expected);
      EXPECT_EQ(TextOf(row), TextOf(expected)) << count;
      EXPECT_EQ(largest.device, LargestMagnitude(pair.device.values));
      EXPECT_EQ(largest.bench, LargestMagnitude(pair.bench.values));
      EXPECT_EQ(largest.absolute, LargestMagnitude(errors.absolute()));
    }
  }
}

TEST(PlainPassTest, IsTheSameWithoutWideRegisters) {
  for (const DType dtype : {DType::kFloat32, DType::kBFloat16}) {
    const ResultPair pair = DrawnPair(1003, dtype, 3);
    const PlainInput in{
        pair.device.values.data(), pair.bench.values.data(), 1003, pair.bench.width(), 1e-3, 1e-14, 1e-7};
    PlainFigures found, plain;
    std::vector<double> relative(1003), plain_relative(1003);
    ASSERT_TRUE(MeasurePlain(in, &found, relative.data()));
    ASSERT_TRUE(MeasurePlainly(in, &plain, plain_relative.data()));
    EXPECT_EQ(relative, plain_relative);
    EXPECT_EQ(found.squares, plain.squares);
    EXPECT_EQ(found.small, plain.small);
    EXPECT_EQ(found.small_bad, plain.small_bad);
    EXPECT_EQ(found.largest_relative, plain.largest_relative);
    EXPECT_EQ(found.larger, plain.larger);
    EXPECT_EQ(found.smaller, plain.smaller);
    EXPECT_GT(found.small_bad, 0);
    EXPECT_LT(found.small, 1003);
  }
}

TEST(PlainPassTest, WhatIsNotFiniteIsLeftToTheStandard) {
  for (const double special : {static_cast<double>(NAN), static_cast<double>(INFINITY), 1e39}) {
    for (const size_t place : {size_t{0}, size_t{130}, size_t{198}}) {
      ResultPair pair = DrawnPair(199, DType::kFloat32, 3);
      pair.bench.values[place] = special;
      FigureRow row;
      LargestValues largest;
      EXPECT_FALSE(MeasureBenchmarkAtOnce(pair, &row, &largest));
    }
  }
  ResultPair half = DrawnPair(199, DType::kFloat32, 3);
  half.device.dtype = DType::kFloat16;
  FigureRow row;
  LargestValues largest;
  EXPECT_FALSE(MeasureBenchmarkAtOnce(half, &row, &largest));
}

}  // namespace
}  // namespace msprobe
