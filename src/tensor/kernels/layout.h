// Strided tensors as runs of elements.
#pragma once

#include <cstddef>
#include <cstdint>

#include "tensor/kernels/tensor_view.h"

namespace msprobe {

/// Dimensions of a view, innermost last, without those of length 1 and with neighbours merged where memory allows.
struct Layout {
  const char* data = nullptr;
  size_t element = 0;  // bytes
  int ndim = 0;
  int64_t shape[kMaxDims];
  int64_t strides[kMaxDims];  // in elements
  int64_t count = 1;          // elements of these dimensions
  int64_t repeats = 1;        // how often each of them appears in the tensor (broadcast dimensions)

  bool contiguous() const { return ndim == 0 || (ndim == 1 && strides[0] == 1); }
};

enum class Order {
  kMemory,   ///< for sums: dimensions sorted and flipped by stride, broadcast ones folded into `repeats`
  kLogical,  ///< for checksums: C order of the tensor
};

/// False when the view has no known element size, too many dimensions, or a negative or overflowing shape.
bool MakeLayout(const TensorView& t, Order order, Layout* out);

/// Goes through elements [begin, end) of a layout, in runs: take(pointer, elements) for each. Runs that lie scattered
/// are gathered into a small buffer first.
class LayoutWalker {
 public:
  explicit LayoutWalker(const Layout& layout) : layout_(layout) {}
  template <typename Take>
  void Walk(int64_t begin, int64_t end, const Take& take);

 private:
  static constexpr size_t kBufferBytes = 16384;
  // A row of at least this many bytes is taken where it lies.
  static constexpr size_t kLongRow = 2048;

  void Seek(int64_t at);
  /// Moves on by `n` elements of the innermost dimension, which do not pass its end.
  void Advance(int64_t n);
  void Gather(const char* from, int64_t stride, size_t n, char* to) const;

  const Layout& layout_;
  int64_t index_[kMaxDims];
  int64_t offset_ = 0;  // in elements, of the current index
  alignas(64) char buffer_[kBufferBytes];
};

template <typename Take>
void LayoutWalker::Walk(int64_t begin, int64_t end, const Take& take) {
  const size_t element = layout_.element;
  if (layout_.contiguous()) {
    take(layout_.data + static_cast<size_t>(begin) * element, static_cast<size_t>(end - begin));
    return;
  }
  Seek(begin);
  const int last = layout_.ndim - 1;
  const int64_t stride = layout_.strides[last];
  const size_t capacity = kBufferBytes / element;
  size_t filled = 0;
  const auto flush = [&] {
    if (filled) take(static_cast<const char*>(buffer_), filled);
    filled = 0;
  };
  for (int64_t at = begin; at < end;) {
    int64_t run = layout_.shape[last] - index_[last];
    if (run > end - at) run = end - at;
    const char* from = layout_.data + offset_ * static_cast<int64_t>(element);
    if (stride == 1 && static_cast<size_t>(run) * element >= kLongRow) {
      flush();
      take(from, static_cast<size_t>(run));
    } else {
      const size_t room = capacity - filled;
      if (static_cast<size_t>(run) > room) run = static_cast<int64_t>(room);
      Gather(from, stride, static_cast<size_t>(run), buffer_ + filled * element);
      filled += static_cast<size_t>(run);
      if (filled == capacity) flush();
    }
    at += run;
    Advance(run);
  }
  flush();
}

}  // namespace msprobe
