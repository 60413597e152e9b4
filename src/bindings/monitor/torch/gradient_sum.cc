#include "bindings/monitor/torch/gradient_sum.h"

#include <algorithm>
#include <cstring>

#include "bindings/python/runtime.h"
#include "tensor/kernels/layout.h"

namespace msprobe {
namespace {

template <typename T>
void AddEach(char* sum, const char* more, size_t count) {
  // Blocks of a fixed length are what compilers turn into vector instructions.
  constexpr size_t kBlock = 16;
  T a[kBlock], b[kBlock];
  for (size_t at = 0; at < count; at += kBlock) {
    const size_t n = std::min(kBlock, count - at);
    char* to = sum + at * sizeof(T);
    const char* from = more + at * sizeof(T);
    if (n < kBlock) {
      std::memcpy(a, to, n * sizeof(T));
      std::memcpy(b, from, n * sizeof(T));
      for (size_t i = 0; i < n; ++i) a[i] += b[i];
      std::memcpy(to, a, n * sizeof(T));
      return;
    }
    std::memcpy(a, to, sizeof a);
    std::memcpy(b, from, sizeof b);
    for (size_t i = 0; i < kBlock; ++i) a[i] += b[i];
    std::memcpy(to, a, sizeof a);
  }
}

}  // namespace

bool GradientSum::Add(const TensorLook& g) {
  // Of shorter types the framework rounds each sum its own way.
  if (g.dtype != DType::kFloat32 && g.dtype != DType::kFloat64) return false;
  const bool first = empty();
  if (!first && (g.dtype != dtype_ || !std::equal(shape_.begin(), shape_.end(), g.shape, g.shape + g.ndim))) {
    return false;
  }
  Layout layout;
  if (!MakeLayout(g.view(), Order::kLogical, &layout)) return false;
  if (first) {
    dtype_ = g.dtype;
    shape_.assign(g.shape, g.shape + g.ndim);
    data_.reset(new char[std::max<size_t>(static_cast<size_t>(g.count) * layout.element, 1)]);
  }
  WithoutGilFor(g.count, [&] {
    char* to = data_.get();
    LayoutWalker(layout).Walk(0, layout.count, [&](const char* from, size_t n) {
      if (first) {
        std::memcpy(to, from, n * layout.element);
      } else if (dtype_ == DType::kFloat32) {
        AddEach<float>(to, from, n);
      } else {
        AddEach<double>(to, from, n);
      }
      to += n * layout.element;
    });
  });
  return true;
}

TensorView GradientSum::view() const {
  return {data_.get(), dtype_, static_cast<int>(shape_.size()), shape_.data(), nullptr};
}

}  // namespace msprobe
