#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/parallel.h"
#include "tensor/kernels/metrics.h"

namespace msprobe {
namespace {

/// Elements, those whose sign differs, and the sum of both sides.
constexpr PairLoop kSigns = {[](const double* target, const double* golden, size_t n, LoopSums* sums) {
                               for (size_t i = 0; i < n; ++i) {
                                 sums->at[0] += 1;
                                 sums->at[1] += std::signbit(target[i]) != std::signbit(golden[i]);
                                 sums->at[2] += target[i] + golden[i];
                               }
                             },
                             AddSums};
constexpr PairLoop kLargest = {
    [](const double* target, const double* golden, size_t n, LoopSums* sums) {
      for (size_t i = 0; i < n; ++i) {
        sums->at[0] = std::max({sums->at[0], target[i], golden[i]});
      }
    },
    [](const LoopSums& from, double, LoopSums* to) { to->at[0] = std::max(to->at[0], from.at[0]); }};
constexpr const PairLoop* kBoth[] = {&kSigns, &kLargest};

TensorMetrics CompareBy(const TensorView& target, const TensorView& golden, bool loops = true) {
  MetricsOptions options;
  if (loops) options.loops = kBoth;
  return CompareTensors(target, golden, options);
}

template <typename T>
std::vector<LoopSums> Loops(DType dtype, const std::vector<T>& target, const std::vector<T>& golden) {
  const auto n = static_cast<int64_t>(target.size() * sizeof(T) / ElementSize(dtype));
  return CompareBy({target.data(), dtype, 1, &n, nullptr}, {golden.data(), dtype, 1, &n, nullptr}).loops;
}

TEST(MetricsLoops, SeeTheElementsOfEachType) {
  const auto expect = [](const std::vector<LoopSums>& got, double count, double signs, double sum, double largest) {
    ASSERT_EQ(got.size(), 2u);
    EXPECT_EQ(got[0].at, (std::array<double, 4>{count, signs, sum, 0}));
    EXPECT_EQ(got[1].at[0], largest);
  };
  expect(Loops<float>(DType::kFloat32, {1, -2, 3}, {1, 2, 4}), 3, 1, 9, 4);
  expect(Loops<double>(DType::kFloat64, {1, -2, 3}, {1, 2, 4}), 3, 1, 9, 4);
  expect(Loops<int8_t>(DType::kInt8, {1, -2, 3}, {1, 2, 4}), 3, 1, 9, 4);
  expect(Loops<int64_t>(DType::kInt64, {1, -2, 3}, {1, 2, 4}), 3, 1, 9, 4);
  expect(Loops<uint64_t>(DType::kUInt64, {1, 2}, {1, uint64_t{1} << 63}), 2, 0, 4 + 0x1p63, 0x1p63);
  expect(Loops<uint16_t>(DType::kBFloat16, {0x3F80, 0xC000}, {0x3F80, 0x4000}), 2, 1, 2, 2);
  expect(Loops<uint16_t>(DType::kFloat16, {0x3C00, 0xC000}, {0x3C00, 0x4000}), 2, 1, 2, 2);
  expect(Loops<float>(DType::kComplex64, {3, 4, -1, 0}, {3, 4, 1, 0}), 2, 0, 12, 5);
  const float inf = std::numeric_limits<float>::infinity();
  expect(Loops<float>(DType::kFloat32, {inf, -2, 3}, {inf, 2, NAN}), 3, 1, 0, 2);
}

TEST(MetricsLoops, PartsAndRepeatsOnAnyNumberOfThreads) {
  const int64_t n = 3'000'001;
  std::vector<float> target(static_cast<size_t>(n)), golden(target.size());
  for (size_t i = 0; i < target.size(); ++i) {
    target[i] = static_cast<float>(i % 7) - 3;
    golden[i] = i % 10 == 0 ? -target[i] : target[i];
  }
  double signs = 0;
  for (size_t i = 0; i < target.size(); ++i) signs += std::signbit(target[i]) != std::signbit(golden[i]);
  for (const int threads : {1, 3}) {
    SetThreadCount(threads);
    const auto got = Loops(DType::kFloat32, target, golden);
    EXPECT_EQ(got[0].at[0], static_cast<double>(n));
    EXPECT_EQ(got[0].at[1], signs);
    EXPECT_EQ(got[1].at[0], 3);
  }
  SetThreadCount(0);
  const int64_t shape[] = {5, 10}, strides[] = {0, 1};
  const TensorView a{target.data(), DType::kFloat32, 2, shape, strides},
      b{golden.data(), DType::kFloat32, 2, shape, strides};
  const std::vector<LoopSums> repeated = CompareBy(a, b).loops;
  EXPECT_EQ(repeated[0].at[0], 50) << "elements that both sides repeat are read once and count each time";
  EXPECT_EQ(repeated[1].at[0], 3);
}

TEST(MetricsLoops, WithoutThemNothingIsAdded) {
  const int64_t n = 2;
  const float v[] = {1, 2}, w[] = {1, 3};
  const TensorView a{v, DType::kFloat32, 1, &n, nullptr}, b{w, DType::kFloat32, 1, &n, nullptr};
  EXPECT_TRUE(CompareBy(a, b, false).loops.empty());
  EXPECT_EQ(CompareBy(a, b, false).euc_dist, CompareBy(a, b).euc_dist);
}

}  // namespace
}  // namespace msprobe
