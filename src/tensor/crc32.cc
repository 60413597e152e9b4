#include <libdeflate.h>

#include "tensor/layout.h"
#include "tensor/stats.h"

namespace msprobe {

uint32_t Crc32(const void* data, size_t bytes, uint32_t seed) { return libdeflate_crc32(seed, data, bytes); }

uint32_t ComputeCrc32(const TensorView& t) {
  Layout layout;
  if (!MakeLayout(t, Order::kLogical, &layout) || layout.count == 0) return 0;
  uint32_t crc = 0;
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) { crc = Crc32(p, n * layout.element, crc); });
  return crc;
}

}  // namespace msprobe
