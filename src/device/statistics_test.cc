#include "device/statistics.h"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "device/host_kernel.h"
#include "tensor/kernels/layout.h"

namespace msprobe::device {
namespace {

/// The launch of one tensor behind `before` parts of another one.
std::vector<DeviceTally> TalliesOf(const TensorView& view, DeviceShape* shape, int32_t before = 0) {
  static const std::vector<char> zeros(static_cast<size_t>(4 * kPartElements), 0);
  DeviceBatch batch;
  batch.tensors = 0;
  int32_t parts = 0;
  if (before > 0) {
    const int64_t count = before * kPartElements;
    DeviceShape other;
    EXPECT_TRUE(DescribeForKernel({zeros.data(), DType::kBool, 1, &count, nullptr}, &batch.tensor[0], &other));
    batch.tensor[batch.tensors++].first_part = 0;
    parts = other.parts;
  }
  DeviceTensor& tensor = batch.tensor[batch.tensors++];
  EXPECT_TRUE(DescribeForKernel(view, &tensor, shape));
  tensor.first_part = parts;
  std::vector<DeviceTally> tallies(static_cast<size_t>(parts + shape->parts));
  batch.parts = tallies.data();
  RunBatch(batch, parts + shape->parts);
  tallies.erase(tallies.begin(), tallies.begin() + parts);
  return tallies;
}

Stats KernelStats(const TensorView& view) {
  DeviceShape shape;
  const std::vector<DeviceTally> parts = TalliesOf(view, &shape);
  return StatsOfTallies(shape, parts);
}

template <typename T>
Stats KernelStatsOf(DType dtype, const std::vector<T>& v) {
  const auto count = static_cast<int64_t>(v.size() * sizeof(T) / ElementSize(dtype));
  return KernelStats({v.data(), dtype, 1, &count, nullptr});
}

bool SameExtreme(double a, double b, DType type) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) && std::isnan(b);
  const bool by_hypot = type == DType::kComplex32 || (type == DType::kComplex128 && !(b > 1e-140 && b < 1e140));
  return a == b || (by_hypot && std::nextafter(a, b) == b);
}

void ExpectSum(double kernel, double plain, double scale, const std::string& what) {
  if (!std::isfinite(plain)) {
    EXPECT_TRUE(kernel == plain || (std::isnan(kernel) && std::isnan(plain))) << what << kernel << " " << plain;
    return;
  }
  EXPECT_LE(std::fabs(kernel - plain), 1e-12 * scale) << what << kernel << " " << plain;
}

void ExpectAsPlain(const TensorView& view, const std::string& what) {
  Stats plain;
  ASSERT_TRUE(ComputeStatsScalar(view, &plain)) << what;
  const Stats kernel = KernelStats(view);
  EXPECT_EQ(kernel.count, plain.count) << what;
  EXPECT_EQ(kernel.nan_count, plain.nan_count) << what;
  EXPECT_EQ(kernel.inf_count, plain.inf_count) << what;
  EXPECT_EQ(kernel.int_max, plain.int_max) << what;
  EXPECT_EQ(kernel.int_min, plain.int_min) << what;
  EXPECT_EQ(kernel.uint_max, plain.uint_max) << what;
  EXPECT_EQ(kernel.uint_min, plain.uint_min) << what;
  EXPECT_TRUE(SameExtreme(kernel.max, plain.max, view.dtype)) << what << kernel.max << " " << plain.max;
  EXPECT_TRUE(SameExtreme(kernel.min, plain.min, view.dtype)) << what << kernel.min << " " << plain.min;
  ExpectSum(kernel.norm, plain.norm, plain.norm, what + "norm ");
  // A sum beyond the range of double may be infinite in one order and not in another.
  if (plain.norm > 1e300) return;
  ExpectSum(kernel.mean, plain.mean, plain.norm / std::sqrt(static_cast<double>(plain.count)), what + "mean ");
}

std::vector<char> RandomBytes(std::mt19937_64& rng, DType type, size_t bytes, bool any_bits) {
  std::vector<char> memory(bytes);
  for (size_t i = 0; i + 8 <= bytes; i += 8) {
    uint64_t r = rng();
    if (!any_bits && type == DType::kFloat32) r &= 0xBFFFFFFFBFFFFFFF;  // finite
    if (!any_bits && (type == DType::kFloat64 || type == DType::kComplex128)) r &= 0xBFFFFFFFFFFFFFFF;
    if (!any_bits && (type == DType::kFloat16 || type == DType::kBFloat16)) r &= 0xBFFFBFFFBFFFBFFF;
    std::memcpy(&memory[i], &r, 8);
  }
  return memory;
}

std::string TextOf(DType type, const TensorView& view) {
  std::string text = std::string(DTypeName(type)) + " [";
  for (int d = 0; d < view.ndim; ++d) {
    text += std::to_string(view.shape[d]) + "/" + std::to_string(view.strides ? view.strides[d] : 0) + " ";
  }
  return text + "] ";
}

TEST(DeviceKernel, AnyViewOfAnyTypeHasTheStatisticsOfThePlainLoop) {
  std::mt19937_64 rng(7);
  constexpr size_t kBytes = 1 << 17;
  for (int type = 0; type < static_cast<int>(DType::kUnknown); ++type) {
    const auto dtype = static_cast<DType>(type);
    const auto elements = static_cast<int64_t>(kBytes / ElementSize(dtype));
    for (int round = 0; round < 24; ++round) {
      const std::vector<char> memory = RandomBytes(rng, dtype, kBytes, round % 2 == 1);
      const int ndim = static_cast<int>(rng() % 7);
      int64_t shape[8], strides[8], reach = 0, begin = 0;
      for (int d = 0; d < ndim; ++d) {
        shape[d] = static_cast<int64_t>(rng() % 7) + 1;
        strides[d] = static_cast<int64_t>(rng() % 200) * (rng() % 3 == 0 ? -1 : 1);
        const int64_t most = (shape[d] - 1) * std::abs(strides[d]);
        if (reach + most >= elements) shape[d] = 1;
        reach += (shape[d] - 1) * std::abs(strides[d]);
        if (strides[d] < 0) begin -= (shape[d] - 1) * strides[d];
      }
      const TensorView view{memory.data() + begin * static_cast<int64_t>(ElementSize(dtype)), dtype, ndim, shape,
                            strides};
      ExpectAsPlain(view, TextOf(dtype, view));
      // Contiguous, over several parts and with a rest.
      const int64_t all = elements - static_cast<int64_t>(rng() % 300);
      ExpectAsPlain({memory.data(), dtype, 1, &all, nullptr}, TextOf(dtype, {nullptr, dtype, 1, &all, nullptr}));
    }
  }
}

TEST(DeviceKernel, BitsDoNotDependOnTheLaunch) {
  std::mt19937_64 rng(3);
  const int64_t count = 3 * kPartElements + 77;
  const std::vector<char> memory = RandomBytes(rng, DType::kFloat32, static_cast<size_t>(count) * 4, false);
  const TensorView view{memory.data(), DType::kFloat32, 1, &count, nullptr};
  DeviceShape shape;
  const std::vector<DeviceTally> alone = TalliesOf(view, &shape);
  for (const int32_t before : {1, 3}) {
    const std::vector<DeviceTally> beside = TalliesOf(view, &shape, before);
    ASSERT_EQ(alone.size(), beside.size());
    EXPECT_EQ(0, std::memcmp(alone.data(), beside.data(), alone.size() * sizeof(DeviceTally)));
  }
}

TEST(DeviceKernel, NanAndInfinities) {
  Stats s = KernelStatsOf(DType::kFloat32, std::vector<float>{1, NAN, -INFINITY, 4});
  EXPECT_TRUE(std::isnan(s.max) && std::isnan(s.min) && std::isnan(s.mean) && std::isnan(s.norm));
  EXPECT_EQ(s.nan_count, 1);
  EXPECT_EQ(s.inf_count, 1);
  s = KernelStatsOf(DType::kFloat64, std::vector<double>{1, INFINITY, 4});
  EXPECT_EQ(s.max, INFINITY);
  EXPECT_EQ(s.min, 1);
  EXPECT_EQ(s.norm, INFINITY);
  s = KernelStatsOf(DType::kComplex64, std::vector<float>{INFINITY, NAN, 3, 4});
  EXPECT_EQ(s.max, INFINITY);
  EXPECT_EQ(s.min, 5);
  EXPECT_TRUE(std::isnan(s.norm));
}

TEST(DeviceKernel, SquaresBeyondTheRangeOfDouble) {
  EXPECT_EQ(KernelStatsOf(DType::kFloat64, std::vector<double>{3e300, 4e300}).norm, 5e300);
  EXPECT_DOUBLE_EQ(KernelStatsOf(DType::kFloat64, std::vector<double>{3e-300, 4e-300}).norm, 5e-300);
  EXPECT_EQ(KernelStatsOf(DType::kFloat64, std::vector<double>{3e300, 1, 1e-300}).norm, 3e300);
  EXPECT_EQ(KernelStatsOf(DType::kFloat64, std::vector<double>{0, 0x1p-1074}).norm, 0x1p-1074);
  EXPECT_EQ(KernelStatsOf(DType::kFloat64, std::vector<double>{0.0}).norm, 0);
}

TEST(DeviceKernel, HypotIsThatOfTheLibraryWithinAUnit) {
  std::mt19937_64 rng(5);
  int other = 0;
  for (int i = 0; i < 200000; ++i) {
    const double x = std::ldexp(static_cast<double>(rng() >> 11), static_cast<int>(rng() % 1000) - 500);
    const double y = std::ldexp(x, static_cast<int>(rng() % 60) - 30) * (1 + static_cast<double>(rng() % 1000) / 1000);
    const double own = Hypot(x, -y), library = std::hypot(x, -y);
    ASSERT_TRUE(own == library || std::nextafter(own, library) == library) << x << " " << y;
    other += own != library;
  }
  EXPECT_LT(other, 2000);
  for (const double x : {0.0, 1e308, 5e-324, HUGE_VAL, std::nan("")}) {
    for (const double y : {0.0, 1e308, 5e-324, HUGE_VAL, std::nan("")}) {
      const double own = Hypot(x, y), library = std::hypot(x, y);
      EXPECT_TRUE(own == library || (std::isnan(own) && std::isnan(library))) << x << " " << y;
    }
  }
}

TEST(DeviceKernel, RepeatedElementsCountAsOften) {
  const float v[] = {1, -2, 3};
  const int64_t shape[] = {4, 3}, strides[] = {0, 1};
  ExpectAsPlain({v, DType::kFloat32, 2, shape, strides}, "expanded ");
  ExpectAsPlain({v, DType::kFloat32, 0, nullptr, nullptr}, "0-d ");
}

TEST(DeviceKernel, WhatItCannotRead) {
  alignas(16) float v[8] = {};
  DeviceTensor tensor;
  DeviceShape of;
  const int64_t none[] = {3, 0}, two[] = {2};
  EXPECT_FALSE(DescribeForKernel({v, DType::kFloat32, 2, none, nullptr}, &tensor, &of));
  EXPECT_FALSE(DescribeForKernel({v, DType::kUnknown, 1, two, nullptr}, &tensor, &of));
  EXPECT_FALSE(DescribeForKernel({nullptr, DType::kFloat32, 1, two, nullptr}, &tensor, &of));
  const char* odd = reinterpret_cast<const char*>(v) + 2;
  EXPECT_FALSE(DescribeForKernel({odd, DType::kFloat32, 1, two, nullptr}, &tensor, &of));
  EXPECT_FALSE(DescribeForKernel({odd, DType::kComplex64, 1, two, nullptr}, &tensor, &of));
  EXPECT_TRUE(DescribeForKernel({odd, DType::kComplex32, 1, two, nullptr}, &tensor, &of));
  int64_t shape[kMostDims + 1], strides[kMostDims + 1];
  for (int d = 0; d <= kMostDims; ++d) {
    shape[d] = 2;
    strides[d] = int64_t{1} << (2 * (kMostDims - d));
  }
  EXPECT_FALSE(DescribeForKernel({v, DType::kInt8, kMostDims + 1, shape, strides}, &tensor, &of));
  EXPECT_TRUE(DescribeForKernel({v, DType::kInt8, kMostDims, shape + 1, strides + 1}, &tensor, &of));
}

TEST(DeviceKernel, IndicesBeyond32Bits) {
  constexpr int64_t kCount = (int64_t{1} << 32) + 5;
  void* memory = mmap(nullptr, kCount, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  static_cast<int8_t*>(memory)[kCount - 1] = 9;
  DeviceTensor tensor;
  DeviceShape of;
  ASSERT_TRUE(DescribeForKernel({memory, DType::kInt8, 1, &kCount, nullptr}, &tensor, &of));
  EXPECT_LE(of.parts, kMostParts);
  EXPECT_EQ(static_cast<int64_t>(TallyPart(tensor, of.parts - 1).max), 9);
  EXPECT_GE(tensor.part_elements * of.parts, kCount);
  munmap(memory, kCount);
  tensor.ndim = 3;
  const int64_t shape[] = {3, int64_t{1} << 33, 5}, strides[] = {int64_t{1} << 40, 7, int64_t{1} << 35};
  std::copy_n(shape, 3, tensor.shape);
  std::copy_n(strides, 3, tensor.strides);
  const int64_t number = (2 * shape[1] + shape[1] - 1) * 5 + 4;
  EXPECT_EQ(OffsetOf(tensor, number), 2 * strides[0] + (shape[1] - 1) * 7 + 4 * strides[2]);
}

}  // namespace
}  // namespace msprobe::device
