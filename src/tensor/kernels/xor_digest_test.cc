#include "tensor/kernels/xor_digest.h"

#include <gtest/gtest.h>

#include <cstring>
#include <vector>

namespace msprobe {
namespace {

uint64_t Plain(const std::vector<unsigned char>& bytes) {
  uint64_t digest = 0;
  for (size_t i = 0; i < bytes.size(); ++i) digest ^= uint64_t{bytes[i]} << (i % 8 * 8);
  return digest;
}

TEST(Xor, FoldsTheBytesOfEveryLength) {
  for (size_t n = 0; n < 300; ++n) {
    std::vector<unsigned char> bytes(n);
    for (size_t i = 0; i < n; ++i) bytes[i] = static_cast<unsigned char>(i * 131 + 17);
    const int64_t shape[] = {static_cast<int64_t>(n)};
    EXPECT_EQ(ComputeXor({bytes.data(), DType::kUInt8, 1, shape, nullptr}), Plain(bytes)) << n;
  }
}

TEST(Xor, StridedTensorsEqualTheirContiguousCopy) {
  // Rows of 2051 bytes, longer than what is gathered: runs begin at every place of a word.
  constexpr int64_t kRows = 9, kColumns = 2051;
  std::vector<unsigned char> wide(kRows * (kColumns + 5)), packed;
  for (size_t i = 0; i < wide.size(); ++i) wide[i] = static_cast<unsigned char>(i * i >> 3);
  for (size_t r = 0; r < kRows; ++r) {
    packed.insert(packed.end(), &wide[r * (kColumns + 5)], &wide[r * (kColumns + 5)] + kColumns);
  }
  const int64_t shape[] = {kRows, kColumns}, strides[] = {kColumns + 5, 1};
  EXPECT_EQ(ComputeXor({wide.data(), DType::kInt8, 2, shape, strides}), Plain(packed));
  const int64_t turned[] = {kColumns, kRows}, turned_strides[] = {1, kColumns + 5};
  std::vector<unsigned char> transposed;
  for (size_t c = 0; c < kColumns; ++c) {
    for (size_t r = 0; r < kRows; ++r) transposed.push_back(wide[r * (kColumns + 5) + c]);
  }
  EXPECT_EQ(ComputeXor({wide.data(), DType::kInt8, 2, turned, turned_strides}), Plain(transposed));
}

TEST(Xor, ASingleNumberIsItsBytes) {
  const float one = 1.0f;
  EXPECT_EQ(ComputeXor({&one, DType::kFloat32, 0, nullptr, nullptr}), 0x3f800000u);
}

}  // namespace
}  // namespace msprobe
