#include "import/adump_layout.h"

#include <gtest/gtest.h>

#include <numeric>

#include "base/file.h"

namespace msprobe {
namespace {

using Shape = std::vector<int64_t>;

/// A tensor of int32 in the order of the device.
AdumpTensor Device(AscendFormat format, const Shape& shape, const Shape& original, std::vector<int32_t>* values) {
  AdumpTensor out;
  out.format = format;
  out.original_shape = original;
  out.tensor.dtype = DType::kInt32;
  out.tensor.shape = shape;
  out.tensor.data = values->data();
  out.bytes = {reinterpret_cast<const char*>(values->data()), values->size() * 4};
  uint64_t bytes = 0;
  EXPECT_TRUE(SetContiguous(&out.tensor, out.bytes.size(), &bytes));
  return out;
}

std::vector<int32_t> Values(const HostTensor& host) {
  EXPECT_FALSE(host.device_order);
  const auto* p = static_cast<const int32_t*>(host.tensor.data);
  return {p, p + host.copy.size() / 4};
}

int32_t Code(int64_t a, int64_t b, int64_t c = 0, int64_t d = 0) {
  return static_cast<int32_t>(((a * 100 + b) * 100 + c) * 100 + d);
}

TEST(AdumpLayout, Nc1hwc0) {
  const Shape host = {2, 5, 3, 2};
  constexpr int64_t kC0 = 4;
  std::vector<int32_t> device(2 * 2 * 3 * 2 * kC0, -1), want;
  for (int64_t n = 0; n < 2; ++n) {
    for (int64_t c = 0; c < 5; ++c) {
      for (int64_t h = 0; h < 3; ++h) {
        for (int64_t w = 0; w < 2; ++w) {
          device[static_cast<size_t>((((n * 2 + c / kC0) * 3 + h) * 2 + w) * kC0 + c % kC0)] = Code(n, c, h, w);
          want.push_back(Code(n, c, h, w));
        }
      }
    }
  }
  const AdumpTensor t = Device(AscendFormat::kNc1hwc0, {2, 2, 3, 2, kC0}, host, &device);
  const HostTensor out = ToHost(t);
  EXPECT_EQ(out.tensor.shape, host);
  EXPECT_EQ(Values(out), want);
}

TEST(AdumpLayout, FractalNzWithBatch) {
  constexpr int64_t kBlock = 4;
  const Shape host = {2, 6, 5};
  std::vector<int32_t> device(2 * 2 * 2 * kBlock * kBlock, -1), want;
  for (int64_t b = 0; b < 2; ++b) {
    for (int64_t m = 0; m < 6; ++m) {
      for (int64_t n = 0; n < 5; ++n) {
        const int64_t at = (((b * 2 + n / kBlock) * 2 + m / kBlock) * kBlock + m % kBlock) * kBlock + n % kBlock;
        device[static_cast<size_t>(at)] = Code(b, m, n);
        want.push_back(Code(b, m, n));
      }
    }
  }
  EXPECT_EQ(Values(ToHost(Device(AscendFormat::kFractalNz, {2, 2, 2, kBlock, kBlock}, host, &device))), want);
}

TEST(AdumpLayout, FractalZ) {
  constexpr int64_t kBlock = 4;
  const Shape host = {3, 5, 2, 2};  // filters, channels, height, width
  std::vector<int32_t> device(2 * 2 * 2 * 1 * kBlock * kBlock, -1), want;
  for (int64_t n = 0; n < 3; ++n) {
    for (int64_t c = 0; c < 5; ++c) {
      for (int64_t h = 0; h < 2; ++h) {
        for (int64_t w = 0; w < 2; ++w) {
          const int64_t first = (c / kBlock * 2 + h) * 2 + w;
          device[static_cast<size_t>((first * kBlock + n) * kBlock + c % kBlock)] = Code(n, c, h, w);
          want.push_back(Code(n, c, h, w));
        }
      }
    }
  }
  EXPECT_EQ(Values(ToHost(Device(AscendFormat::kFractalZ, {8, 1, kBlock, kBlock}, host, &device))), want);
}

TEST(AdumpLayout, WhatDoesNotFitStaysAsTheDeviceHasIt) {
  std::vector<int32_t> values(16);
  std::iota(values.begin(), values.end(), 0);
  for (const auto& [format, shape, original] :
       {std::tuple(AscendFormat::kFractalNz, Shape{1, 1, 4, 4}, Shape{9, 9}),
        std::tuple(AscendFormat::kFractalZ, Shape{1, 1, 4, 4}, Shape{4, 4, 1 << 20, 1 << 30}),
        std::tuple(AscendFormat::kNc1hwc0, Shape{4, 4}, Shape{4, 4}),
        std::tuple(AscendFormat::kOther, Shape{16}, Shape{4, 4})}) {
    const HostTensor out = ToHost(Device(format, shape, original, &values));
    EXPECT_TRUE(out.device_order);
    EXPECT_TRUE(out.copy.empty());
    EXPECT_EQ(out.tensor.shape, shape);
  }
  EXPECT_FALSE(ToHost(Device(AscendFormat::kNd, {16}, {16}, &values)).device_order);
}

TEST(AdumpLayout, FilesOfTheCorpus) {
  const auto map = MappedFile::Open(MSPROBE_SOURCE_DIR "/tests/fuzz/corpus/adump/conv2d.bin");
  ASSERT_TRUE(map.ok());
  const auto file = ReadAdump(map->text(), "conv2d");
  ASSERT_TRUE(file.ok());
  for (const AdumpTensor& t : file->tensors) {
    const HostTensor host = ToHost(t);
    EXPECT_FALSE(host.device_order);
    EXPECT_EQ(host.tensor.shape, t.original_shape);
  }
}

}  // namespace
}  // namespace msprobe
