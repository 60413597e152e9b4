#include "tensor/kernels/crc32.h"

#include <libdeflate.h>

#include "tensor/kernels/layout.h"

namespace msprobe {
namespace crc32 {

uint32_t Plain(const char* data, size_t bytes, uint32_t seed) { return libdeflate_crc32(seed, data, bytes); }

uint32_t Update(const char* data, size_t bytes, uint32_t seed, size_t ahead) {
  static const Kernel kernel = Vector512();
  return kernel != nullptr ? kernel(data, bytes, seed, ahead) : Plain(data, bytes, seed);
}

}  // namespace crc32

uint32_t Crc32(const void* data, size_t bytes, uint32_t seed) {
  return crc32::Update(static_cast<const char*>(data), bytes, seed);
}

// Every byte of B multiplies the remainder of A by x^8.
uint32_t CombineCrc32(uint32_t a, uint32_t b, uint64_t bytes_of_b) {
  return crc32::Multiply(a, crc32::PowerOfX(8 * bytes_of_b)) ^ b;
}

uint32_t ComputeCrc32(const TensorView& t) {
  Layout layout;
  if (!MakeLayout(t, Order::kLogical, &layout) || layout.count == 0) return 0;
  uint32_t crc = 0;
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) { crc = Crc32(p, n * layout.element, crc); });
  return crc;
}

}  // namespace msprobe
