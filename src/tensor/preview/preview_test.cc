#include "tensor/preview/preview.h"

#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "base/parallel.h"

namespace msprobe {
namespace {

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr double kDoubleInf = std::numeric_limits<double>::infinity();

template <typename T>
TensorView View(const std::vector<T>& data, const std::vector<int64_t>& shape, DType dtype) {
  return {data.data(), dtype, static_cast<int>(shape.size()), shape.data(), nullptr};
}

int64_t Sum(const std::vector<int64_t>& counts) { return std::accumulate(counts.begin(), counts.end(), int64_t{0}); }

TEST(Preview, SingleTensor) {
  const std::vector<float> data{0, 1, 2, 3, static_cast<float>(kNan), -1, static_cast<float>(kDoubleInf), 5};
  const std::vector<int64_t> shape{2, 4};
  const auto p = *PreviewTensors(View(data, shape, DType::kFloat32), nullptr);
  EXPECT_EQ(p.target.count, 8);
  EXPECT_EQ(p.target.nan, 1);
  EXPECT_EQ(p.target.plus_inf, 1);
  EXPECT_EQ(p.target.minus_inf, 0);
  EXPECT_EQ(p.target.min, -1);
  EXPECT_EQ(p.target.max, 5);
  EXPECT_EQ(p.target.histogram.from, -1);
  EXPECT_EQ(p.target.histogram.to, 5);
  EXPECT_EQ(Sum(p.target.histogram.counts), 6);
  EXPECT_EQ(p.target.histogram.counts.front(), 1);
  EXPECT_EQ(p.target.histogram.counts.back(), 1);
  EXPECT_FALSE(p.golden);
  EXPECT_FALSE(p.difference);
  ASSERT_EQ(p.worst.size(), 7u);  // all but the zero
  EXPECT_EQ(p.worst[0].index, 4);
  EXPECT_EQ(p.worst[1].index, 6);
  EXPECT_EQ(p.worst[2].index, 7);
  EXPECT_EQ(p.target.heat.cell_rows, 2);
  EXPECT_EQ(p.target.heat.cell_columns, 4);
  EXPECT_EQ(p.target.heat.cells[3], 3);
  EXPECT_TRUE(std::isnan(p.target.heat.cells[4]));
}

TEST(Preview, PairAgainstPlainLoops) {
  std::mt19937 random(7);
  std::normal_distribution<float> normal;
  const std::vector<int64_t> shape{3, 130, 211};
  std::vector<float> t(static_cast<size_t>(3 * 130 * 211)), g;
  for (float& v : t) v = normal(random);
  g = t;
  for (size_t i = 0; i < g.size(); i += 3) g[i] += 0.01F * normal(random);
  t[500] = static_cast<float>(kNan);
  t[501] = g[501] = static_cast<float>(kDoubleInf);
  g[70000] = -4000;
  PreviewOptions options;
  options.slice = 2;
  const TensorView golden = View(g, shape, DType::kFloat32);
  const auto p = *PreviewTensors(View(t, shape, DType::kFloat32), &golden, options);
  ASSERT_TRUE(p.difference);
  int64_t equal = 0;
  double most = 0;
  for (size_t i = 0; i < t.size(); ++i) {
    const bool same = t[i] == g[i];
    equal += same;
    if (std::isfinite(t[i]) && std::isfinite(g[i])) most = std::max(most, std::fabs(double{t[i]} - double{g[i]}));
  }
  EXPECT_EQ(p.difference->equal, equal);
  EXPECT_EQ(p.difference->not_finite, 1);
  EXPECT_EQ(p.difference->histogram.to, most);
  EXPECT_EQ(p.difference->histogram.from, -most);
  EXPECT_EQ(Sum(p.difference->histogram.counts), static_cast<int64_t>(t.size()) - 1);
  EXPECT_EQ(p.difference->histogram.counts.size(), static_cast<size_t>(kPreviewBins + 1));
  EXPECT_EQ(p.target.histogram.from, p.golden->histogram.from);
  EXPECT_EQ(p.golden->min, -4000);
  ASSERT_EQ(p.worst.size(), static_cast<size_t>(kPreviewWorst));
  EXPECT_EQ(p.worst[0].index, 500);
  EXPECT_EQ(p.worst[0].distance, kDoubleInf);
  EXPECT_EQ(p.worst[1].index, 70000);
  for (size_t i = 1; i + 1 < p.worst.size(); ++i) EXPECT_GE(p.worst[i].distance, p.worst[i + 1].distance);

  const HeatMap& heat = p.difference->heat;
  EXPECT_EQ(heat.rows, 130);
  EXPECT_EQ(heat.columns, 211);
  EXPECT_EQ(heat.cell_rows, kPreviewRows);
  EXPECT_EQ(heat.cell_columns, kPreviewColumns);
  std::vector<double> cells(heat.cells.size(), 0);
  for (int64_t row = 0; row < 130; ++row) {
    for (int64_t column = 0; column < 211; ++column) {
      const size_t at = static_cast<size_t>((2 * 130 + row) * 211 + column);
      const double d = double{t[at]} - double{g[at]};
      double& cell = cells[static_cast<size_t>(row * 64 / 130 * 96 + column * 96 / 211)];
      if (std::fabs(d) > std::fabs(cell) || (std::fabs(d) == std::fabs(cell) && d > cell)) cell = d;
    }
  }
  EXPECT_EQ(heat.cells, cells);
}

TEST(Preview, LineOfTheTargetOverTheGoldenSide) {
  const std::vector<int64_t> shape{40, 50};
  std::vector<float> g(2000), t(2000);
  std::mt19937 random(3);
  std::normal_distribution<float> normal;
  for (size_t i = 0; i < g.size(); ++i) {
    g[i] = normal(random);
    t[i] = 1.25f * g[i] + 0.5f;
  }
  g[7] = t[7] = -3.4e38f;  // of a mask
  t[8] = static_cast<float>(kNan);
  const TensorView golden = View(g, shape, DType::kFloat32);
  const auto p = *PreviewTensors(View(t, shape, DType::kFloat32), &golden);
  ASSERT_TRUE(p.difference && p.difference->fit);
  EXPECT_EQ(p.difference->fit->count, 1998);
  EXPECT_NEAR(p.difference->fit->slope, 1.25, 1e-6);
  EXPECT_NEAR(p.difference->fit->offset, 0.5, 1e-6);
  EXPECT_NEAR(p.difference->fit->correlation, 1, 1e-9);
  EXPECT_GT(p.difference->points.size(), 400u);
  EXPECT_LE(p.difference->points.size(), static_cast<size_t>(kPreviewPoints));
  for (const auto& [x, y] : p.difference->points) EXPECT_NEAR(y, 1.25 * x + 0.5, 1e-5);
}

TEST(Preview, NoLineThroughAConstant) {
  const std::vector<int64_t> shape{4};
  const std::vector<float> g{2, 2, 2, 2}, t{1, 2, 3, 4};
  const TensorView golden = View(g, shape, DType::kFloat32);
  const auto p = *PreviewTensors(View(t, shape, DType::kFloat32), &golden);
  ASSERT_TRUE(p.difference);
  EXPECT_FALSE(p.difference->fit);
  EXPECT_EQ(p.difference->points.size(), 4u);
}

TEST(Preview, SameForAnyNumberOfThreads) {
  std::vector<double> t(1 << 19), g(t.size());
  for (size_t i = 0; i < t.size(); ++i) {
    t[i] = std::sin(static_cast<double>(i));
    g[i] = t[i] + (i % 1000 == 0 ? 0.5 : 0);  // many of one size: the first ones count
  }
  const std::vector<int64_t> shape{1 << 10, 1 << 9};
  const TensorView golden = View(g, shape, DType::kFloat64);
  const int before = ThreadCount();
  SetThreadCount(1);
  const auto one = *PreviewTensors(View(t, shape, DType::kFloat64), &golden);
  SetThreadCount(5);
  const auto five = *PreviewTensors(View(t, shape, DType::kFloat64), &golden);
  SetThreadCount(before);
  EXPECT_EQ(one.target.histogram.counts, five.target.histogram.counts);
  EXPECT_EQ(one.difference->histogram.counts, five.difference->histogram.counts);
  EXPECT_EQ(one.difference->heat.cells, five.difference->heat.cells);
  ASSERT_EQ(one.worst.size(), five.worst.size());
  for (size_t i = 0; i < one.worst.size(); ++i) EXPECT_EQ(one.worst[i].index, five.worst[i].index);
}

TEST(Preview, Types) {
  const std::vector<int64_t> shape{4};
  const std::vector<int64_t> ints{-3, 0, 7, int64_t{1} << 40};
  EXPECT_EQ(PreviewTensors(View(ints, shape, DType::kInt64), nullptr)->target.max, std::ldexp(1.0, 40));
  const std::vector<uint8_t> bools{1, 0, 1, 1};
  EXPECT_EQ(PreviewTensors(View(bools, shape, DType::kBool), nullptr)->target.histogram.counts.back(), 3);
  const std::vector<uint16_t> bfloats{0x3F80, 0xC000, 0, 0x7FC0};
  const auto b = *PreviewTensors(View(bfloats, shape, DType::kBFloat16), nullptr);
  EXPECT_EQ(b.target.min, -2);
  EXPECT_EQ(b.target.nan, 1);
  const std::vector<std::complex<float>> parts(600, {3, 4});
  const std::vector<int64_t> many{600};
  const auto c = *PreviewTensors(View(parts, many, DType::kComplex64), nullptr);
  EXPECT_EQ(c.target.min, 5);
  EXPECT_EQ(c.target.histogram.counts[(kPreviewBins - 1) / 2], 600);
  const std::vector<std::complex<double>> wide(4, {0, -2});
  EXPECT_EQ(PreviewTensors(View(wide, shape, DType::kComplex128), nullptr)->target.max, 2);
  EXPECT_FALSE(PreviewTensors(View(bools, shape, DType::kUnknown), nullptr).ok());
}

TEST(Preview, OddShapes) {
  const std::vector<double> data{1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> none{0, 3}, scalar{}, vector{6}, wide{2, 3}, deep{0, 2, 3}, tall{3, 2};
  const auto empty = *PreviewTensors(View(data, none, DType::kFloat64), nullptr);
  EXPECT_EQ(empty.target.count, 0);
  EXPECT_TRUE(empty.target.heat.cells.empty());
  EXPECT_TRUE(std::isnan(empty.target.min));
  EXPECT_TRUE(PreviewTensors(View(data, deep, DType::kFloat64), nullptr).ok());
  const auto one = *PreviewTensors(View(data, scalar, DType::kFloat64), nullptr);
  EXPECT_EQ(one.target.count, 1);
  EXPECT_EQ(one.target.heat.cells, std::vector<double>{1});
  EXPECT_EQ(PreviewTensors(View(data, vector, DType::kFloat64), nullptr)->target.heat.cell_columns, 6);
  // Of other shapes there is no difference, but each side has its picture.
  const TensorView golden = View(data, tall, DType::kFloat64);
  const auto other = *PreviewTensors(View(data, wide, DType::kFloat64), &golden);
  EXPECT_FALSE(other.difference);
  EXPECT_EQ(other.golden->heat.rows, 3);
  EXPECT_EQ(Sum(other.golden->histogram.counts), 6);
  PreviewOptions options;
  options.slice = 1;
  EXPECT_EQ(PreviewTensors(View(data, wide, DType::kFloat64), nullptr, options).status().code(), Code::kBadInput);
  // Of two that differ the first one's slices are asked for; the other has no picture where it has fewer.
  const std::vector<int64_t> three{3, 1, 2};
  const TensorView flat = View(data, wide, DType::kFloat64), stacked = View(data, three, DType::kFloat64);
  const auto fewer = *PreviewTensors(stacked, &flat, options);
  EXPECT_EQ(fewer.target.heat.cells, (std::vector<double>{3, 4}));
  EXPECT_TRUE(fewer.golden->heat.cells.empty());
  EXPECT_EQ(PreviewTensors(flat, &stacked, options).status().code(), Code::kBadInput);
}

TEST(Preview, StridesAndLimits) {
  const std::vector<double> data{1, 2, 3, 4, 5, 6};
  const std::vector<int64_t> shape{3, 2}, transposed{1, 3}, still{0, 0}, huge{int64_t{1} << 20, int64_t{1} << 20};
  const TensorView t{data.data(), DType::kFloat64, 2, shape.data(), transposed.data()};
  const auto p = *PreviewTensors(t, nullptr);
  EXPECT_EQ(p.target.heat.cells, (std::vector<double>{1, 4, 2, 5, 3, 6}));
  EXPECT_EQ(p.worst[0].index, 5);
  const TensorView endless{data.data(), DType::kFloat64, 2, huge.data(), still.data()};
  EXPECT_EQ(PreviewTensors(endless, nullptr).status().code(), Code::kBadInput);
  // The width of this range is not a double.
  const std::vector<double> ends{-1.7e308, 0, 1.7e308, 1.7e308};
  const std::vector<int64_t> four{4};
  const auto widest = *PreviewTensors(View(ends, four, DType::kFloat64), nullptr);
  EXPECT_EQ(widest.target.histogram.counts.front(), 1);
  EXPECT_EQ(widest.target.histogram.counts.back(), 2);
  EXPECT_EQ(widest.target.histogram.counts[kPreviewBins / 2], 1);
  // The number of bins by this width is none either.
  const std::vector<double> tiny{0, 0, 5e-320, 5e-320};
  const auto narrow = *PreviewTensors(View(tiny, four, DType::kFloat64), nullptr);
  EXPECT_EQ(narrow.target.histogram.counts.front(), 2);
  EXPECT_EQ(narrow.target.histogram.counts.back(), 2);
}

}  // namespace
}  // namespace msprobe
