#include "tensor/kernels/xor_digest.h"

#include <bit>
#include <cstring>

#include "tensor/kernels/layout.h"

namespace msprobe {
namespace {

// As if the first byte were the lowest of a word.
uint64_t XorOf(const char* p, size_t bytes) {
  constexpr size_t kLanes = 16;
  uint64_t lanes[kLanes] = {}, word = 0;
  for (; bytes >= sizeof lanes; p += sizeof lanes, bytes -= sizeof lanes) {
    uint64_t v[kLanes];
    std::memcpy(v, p, sizeof v);
    for (size_t i = 0; i < kLanes; ++i) lanes[i] ^= v[i];
  }
  for (const uint64_t lane : lanes) word ^= lane;
  for (; bytes > 0; p += 8, bytes -= bytes < 8 ? bytes : 8) {
    uint64_t v = 0;
    std::memcpy(&v, p, bytes < 8 ? bytes : 8);
    word ^= v;
  }
  return word;
}

}  // namespace

uint64_t ComputeXor(const TensorView& t) {
  Layout layout;
  if (!MakeLayout(t, Order::kLogical, &layout) || layout.count == 0) return 0;
  uint64_t digest = 0, at = 0;
  LayoutWalker(layout).Walk(0, layout.count, [&](const char* p, size_t n) {
    // A run may begin in the middle of a word.
    digest ^= std::rotl(XorOf(p, n * layout.element), static_cast<int>(at % 8 * 8));
    at += n * layout.element;
  });
  return digest;
}

}  // namespace msprobe
