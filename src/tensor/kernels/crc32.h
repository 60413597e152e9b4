// CRC-32 of memory and of tensors.
#pragma once

#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>

#include "tensor/kernels/tensor_view.h"

namespace msprobe {

/// CRC-32 (IEEE 802.3, as zlib) of the elements in C order; strided tensors give the same value as their contiguous
/// copy.
uint32_t ComputeCrc32(const TensorView& t);
uint32_t Crc32(const void* data, size_t bytes, uint32_t seed = 0);
/// CRC of A followed by B, from the CRCs of both and the length of B.
uint32_t CombineCrc32(uint32_t a, uint32_t b, uint64_t bytes_of_b);

}  // namespace msprobe

/// What the instruction sets share. Remainders are polynomials over GF(2) modulo that of the CRC in reflected form: bit
/// 31 is x^0.
namespace msprobe::crc32 {

// Without branches: what the bits of remainders are nobody can foretell.
constexpr uint32_t Multiply(uint32_t a, uint32_t b) {
  uint32_t product = 0;
  for (int bit = 31; bit >= 0; --bit) {
    product ^= b & (0u - (a >> bit & 1));
    b = (b >> 1) ^ (0xEDB88320u & (0u - (b & 1)));
  }
  return product;
}

/// x to the powers of two.
inline constexpr auto kPowersOfX = [] {
  std::array<uint32_t, 64> powers{0x40000000u};
  for (size_t k = 1; k < powers.size(); ++k) powers[k] = Multiply(powers[k - 1], powers[k - 1]);
  return powers;
}();

constexpr uint32_t PowerOfX(uint64_t n) {
  uint32_t product = 0x80000000u;  // 1
  for (; n != 0; n &= n - 1) product = Multiply(product, kPowersOfX[static_cast<size_t>(std::countr_zero(n))]);
  return product;
}

/// The checksum of bytes behind those that gave `seed`. With `ahead`, memory that many bytes further is asked for on
/// the way.
using Kernel = uint32_t (*)(const char* data, size_t bytes, uint32_t seed, size_t ahead);

/// Null when the compiler or this machine does not know the instructions.
Kernel Vector512();
/// For any machine, any length.
uint32_t Plain(const char* data, size_t bytes, uint32_t seed);

/// The fastest.
uint32_t Update(const char* data, size_t bytes, uint32_t seed, size_t ahead = 0);

}  // namespace msprobe::crc32
