#include "tensor/content_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <random>
#include <vector>

namespace msprobe {
namespace {

std::vector<unsigned char> Noise(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> out(n);
  for (auto& c : out) c = static_cast<unsigned char>(random());
  return out;
}

ContentHash HashOf(const std::vector<unsigned char>& data) {
  ContentHasher hasher;
  hasher.Add(data.data(), data.size());
  return hasher.Finish();
}

TEST(ContentHash, VectorAndScalarKernelsGiveTheSameLanes) {
  const internal::StripeKernel vector = internal::VectorStripes();
  if (vector == nullptr) GTEST_SKIP() << "this machine has no vector kernel";
  const auto data = Noise(64 * 16, 1);
  for (size_t first = 0; first < 16; ++first) {
    for (size_t stripes = 0; stripes + first <= 16; ++stripes) {
      uint64_t a[8], b[8];
      for (size_t i = 0; i < 8; ++i) a[i] = b[i] = i * 77;
      internal::ScalarStripes(data.data(), stripes, first, a);
      vector(data.data(), stripes, first, b);
      EXPECT_EQ(std::memcmp(a, b, sizeof a), 0) << first << " " << stripes;
    }
  }
}

TEST(ContentHash, PiecesDoNotShow) {
  const auto data = Noise(5000, 2);
  const ContentHash whole = HashOf(data);
  std::mt19937 random(3);
  for (int round = 0; round < 50; ++round) {
    ContentHasher hasher;
    for (size_t at = 0; at < data.size();) {
      const size_t n = std::min<size_t>(random() % 200, data.size() - at);
      hasher.Add(data.data() + at, n);
      at += n;
    }
    EXPECT_EQ(hasher.Finish(), whole);
  }
}

TEST(ContentHash, EveryByteAndTheLengthCount) {
  for (size_t size : {1, 63, 64, 65, 1024, 1025, 3000}) {
    auto data = Noise(size, 4);
    const ContentHash before = HashOf(data);
    for (size_t i = 0; i < size; i += 7) {
      data[i] ^= 1;
      const ContentHash after = HashOf(data);
      EXPECT_NE(after.low, before.low);
      EXPECT_NE(after.high, before.high);
      data[i] ^= 1;
    }
    data.push_back(0);
    EXPECT_NE(HashOf(data), before);
  }
  EXPECT_NE(HashOf(std::vector<unsigned char>(64)), HashOf(std::vector<unsigned char>(128)));
}

TEST(ContentHash, OrderOfStripesAndWordsCounts) {
  auto data = Noise(64 * 40, 5);
  const ContentHash before = HashOf(data);
  std::swap_ranges(data.begin(), data.begin() + 64, data.begin() + 64 * 17);  // same place in another block
  EXPECT_NE(HashOf(data), before);
  data = Noise(64 * 40, 5);
  std::swap_ranges(data.begin(), data.begin() + 8, data.begin() + 8);
  EXPECT_NE(HashOf(data), before);
}

TEST(ContentHash, StridedTensorsEqualTheirContiguousCopy) {
  const std::vector<float> memory = {0, 1, 2, 3, 4, 5}, transposed = {0, 3, 1, 4, 2, 5};
  const int64_t shape[] = {3, 2}, strides[] = {1, 3};
  EXPECT_EQ(HashContent({memory.data(), DType::kFloat32, 2, shape, strides}),
            HashContent({transposed.data(), DType::kFloat32, 2, shape, nullptr}));
}

}  // namespace
}  // namespace msprobe
