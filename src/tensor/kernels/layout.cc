#include "tensor/kernels/layout.h"

#include <algorithm>
#include <cstring>

namespace msprobe {
namespace {

/// Joins a dimension with the next inner one where both are one run of equal steps.
void Merge(Layout* l) {
  int kept = 0;
  for (int d = 0; d < l->ndim; ++d) {
    if (kept > 0 && l->strides[kept - 1] == l->strides[d] * l->shape[d]) {
      l->shape[kept - 1] *= l->shape[d];
      l->strides[kept - 1] = l->strides[d];
    } else {
      l->shape[kept] = l->shape[d];
      l->strides[kept++] = l->strides[d];
    }
  }
  l->ndim = kept;
}

/// Dimensions of length `ndim` are few: insertion sort, largest stride first.
void SortByStride(Layout* l) {
  for (int i = 1; i < l->ndim; ++i) {
    const int64_t shape = l->shape[i], stride = l->strides[i];
    int k = i;
    for (; k > 0 && l->strides[k - 1] < stride; --k) {
      l->shape[k] = l->shape[k - 1];
      l->strides[k] = l->strides[k - 1];
    }
    l->shape[k] = shape;
    l->strides[k] = stride;
  }
}

template <typename T>
void GatherAs(const char* from, int64_t step, size_t n, char* to) {
  for (size_t i = 0; i < n; ++i) std::memcpy(to + i * sizeof(T), from + static_cast<int64_t>(i) * step, sizeof(T));
}

struct Pair {
  uint64_t parts[2];
};

}  // namespace

bool MakeLayout(const TensorView& t, Order order, Layout* out) {
  out->data = static_cast<const char*>(t.data);
  out->element = ElementSize(t.dtype);
  if (out->element == 0 || t.ndim < 0 || t.ndim > kMaxDims) return false;
  int64_t total = 1;
  bool empty = false, overflow = false;
  for (int d = 0; d < t.ndim; ++d) {
    if (t.shape[d] < 0) return false;
    empty |= t.shape[d] == 0;
    overflow |= __builtin_mul_overflow(total, t.shape[d], &total);
  }
  if (empty) total = 0;
  if (overflow && !empty) return false;
  out->count = total;
  if (total == 0) return true;
  if (!t.strides) {
    out->ndim = 1;
    out->shape[0] = total;
    out->strides[0] = 1;
    return true;
  }
  for (int d = 0; d < t.ndim; ++d) {
    int64_t stride = t.strides[d];
    if (t.shape[d] == 1) continue;
    if (order == Order::kMemory) {
      if (stride == 0) {
        out->repeats *= t.shape[d];
        out->count /= t.shape[d];
        continue;
      }
      if (stride < 0) {
        out->data += (t.shape[d] - 1) * stride * static_cast<int64_t>(out->element);
        stride = -stride;
      }
    }
    out->shape[out->ndim] = t.shape[d];
    out->strides[out->ndim++] = stride;
  }
  if (order == Order::kMemory) SortByStride(out);
  Merge(out);
  return true;
}

void LayoutWalker::Seek(int64_t at) {
  offset_ = 0;
  for (int d = layout_.ndim - 1; d >= 0; --d) {
    index_[d] = at % layout_.shape[d];
    at /= layout_.shape[d];
    offset_ += index_[d] * layout_.strides[d];
  }
}

void LayoutWalker::Advance(int64_t n) {
  int d = layout_.ndim - 1;
  index_[d] += n;
  offset_ += n * layout_.strides[d];
  while (d > 0 && index_[d] == layout_.shape[d]) {
    offset_ -= layout_.shape[d] * layout_.strides[d];
    index_[d] = 0;
    --d;
    ++index_[d];
    offset_ += layout_.strides[d];
  }
}

void LayoutWalker::Gather(const char* from, int64_t stride, size_t n, char* to) const {
  const size_t element = layout_.element;
  if (stride == 1) {
    std::memcpy(to, from, n * element);
    return;
  }
  const int64_t step = stride * static_cast<int64_t>(element);
  switch (element) {
    case 1: return GatherAs<uint8_t>(from, step, n, to);
    case 2: return GatherAs<uint16_t>(from, step, n, to);
    case 4: return GatherAs<uint32_t>(from, step, n, to);
    case 8: return GatherAs<uint64_t>(from, step, n, to);
    default: return GatherAs<Pair>(from, step, n, to);
  }
}

}  // namespace msprobe
