#include "tensor/kernels/content_hash.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <vector>

#include "tensor/kernels/content_hash_kernels.h"

namespace msprobe {
namespace {

using content_hash::Kernel;

std::vector<unsigned char> Noise(size_t n, unsigned seed) {
  std::mt19937 random(seed);
  std::vector<unsigned char> out(n);
  for (auto& c : out) c = static_cast<unsigned char>(random());
  return out;
}

std::vector<const Kernel*> Kernels() {
  std::vector<const Kernel*> all{content_hash::Plain(), content_hash::Avx2(), content_hash::Avx512()};
  std::erase(all, nullptr);
  return all;
}

ContentHash HashOf(const std::vector<unsigned char>& data) {
  const auto n = static_cast<int64_t>(data.size());
  return HashContent({data.data(), DType::kUInt8, 1, &n, nullptr});
}

ContentHash HashOfPieces(const Kernel& kernel, const std::vector<unsigned char>& data, size_t longest, unsigned seed) {
  std::mt19937 random(seed);
  content_hash::State state;
  kernel.begin(&state);
  for (size_t at = 0; at < data.size();) {
    const size_t n = std::min<size_t>(random() % longest + 1, data.size() - at);
    kernel.add(&state, data.data() + at, n);
    at += n;
  }
  return kernel.end(state);
}

// XXH3 takes other ways for up to 16, 128 and 240 bytes, and goes in stripes of 64 and blocks of 1024.
constexpr size_t kSizes[] = {0, 1, 3, 8, 16, 17, 63, 64, 65, 128, 129, 240, 241, 1024, 1025, 3000, 70000};

TEST(ContentHash, IsTheOneOfTheLibrary) {
  // XXH3_128bits of nothing, as its specification has it: the value of an empty tensor, too.
  const ContentHash nothing{0x6001c324468d497full, 0x99aa06d3014798d8ull};
  EXPECT_EQ(HashOf({}), nothing);
  const int64_t shape[] = {0, 3}, strides[] = {1, 2};
  EXPECT_EQ(HashContent({nullptr, DType::kFloat32, 2, shape, strides}), nothing);
}

TEST(ContentHash, AllInstructionSetsGiveTheSame) {
  for (const size_t size : kSizes) {
    const auto data = Noise(size + 1, 1);
    for (const size_t offset : {0, 1}) {  // memory of any alignment
      const ContentHash plain = content_hash::Plain()->whole(data.data() + offset, size);
      for (const Kernel* kernel : Kernels()) EXPECT_EQ(kernel->whole(data.data() + offset, size), plain) << size;
    }
  }
}

TEST(ContentHash, PiecesDoNotShow) {
  for (const size_t size : kSizes) {
    const auto data = Noise(size, 2);
    for (const Kernel* kernel : Kernels()) {
      const ContentHash whole = kernel->whole(data.data(), data.size());
      for (unsigned round = 0; round < 20; ++round) {
        EXPECT_EQ(HashOfPieces(*kernel, data, round % 2 ? 200 : 5000, round), whole) << size;
      }
    }
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

TEST(ContentHash, StridedTensorsEqualTheirContiguousCopy) {
  for (const int64_t n : {3, 40, 300}) {  // the last one is more than the walker's buffer holds
    std::vector<float> memory(static_cast<size_t>(n * n)), transposed(memory.size());
    for (size_t i = 0; i < memory.size(); ++i) memory[i] = static_cast<float>(i);
    const auto side = static_cast<size_t>(n);
    for (size_t i = 0; i < memory.size(); ++i) transposed[i % side * side + i / side] = memory[i];
    const int64_t shape[] = {n, n}, strides[] = {1, n}, whole[] = {n, 1}, broadcast[] = {0, 1};
    EXPECT_EQ(HashContent({memory.data(), DType::kFloat32, 2, shape, strides}),
              HashContent({transposed.data(), DType::kFloat32, 2, shape, nullptr}));
    EXPECT_EQ(HashContent({memory.data(), DType::kFloat32, 2, shape, whole}),
              HashContent({memory.data(), DType::kFloat32, 2, shape, nullptr}));
    std::vector<float> repeated;
    for (size_t i = 0; i < side; ++i) repeated.insert(repeated.end(), memory.begin(), memory.begin() + n);
    EXPECT_EQ(HashContent({memory.data(), DType::kFloat32, 2, shape, broadcast}),
              HashContent({repeated.data(), DType::kFloat32, 2, shape, nullptr}));
  }
}

}  // namespace
}  // namespace msprobe
