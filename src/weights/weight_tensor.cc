#include "weights/weight_tensor.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstring>

#include "base/message.h"

namespace msprobe {
namespace {

int64_t Product(const std::vector<int64_t>& sizes, size_t from = 0) {
  int64_t count = 1;
  for (size_t d = from; d < sizes.size(); ++d) count *= sizes[d];
  return count;
}

constexpr size_t kMostChecked = 2048;  // blocks whose overlaps are looked for in pairs

const char* ElementAt(const WeightBlock& block, const std::vector<int64_t>& inside) {
  int64_t offset = 0;
  for (size_t d = 0; d < inside.size(); ++d) offset += inside[d] * block.strides[d];
  return static_cast<const char*>(block.data) + offset * static_cast<int64_t>(ElementSize(block.dtype));
}

}  // namespace

int64_t WeightTensor::elements() const { return Product(shape); }
uint64_t WeightTensor::bytes() const { return static_cast<uint64_t>(elements()) * ElementSize(dtype); }

bool IsAbsent(const WeightTensor& t) { return std::find(t.shape.begin(), t.shape.end(), 0) != t.shape.end(); }

bool HaveSameBits(const WeightTensor& a, const WeightTensor& b) {
  constexpr int64_t kFirst = 64, kAtOnce = int64_t{1} << 16;  // most tensors differ at once
  if (a.dtype != b.dtype || a.shape != b.shape) return false;
  const int64_t count = a.elements();
  std::vector<char> of_a, of_b;
  for (int64_t begin = 0, end = 0; begin < count; begin = end) {
    end = std::min(count, begin + (begin == 0 ? kFirst : kAtOnce));
    of_a.resize(static_cast<size_t>(end - begin) * ElementSize(a.dtype));
    of_b.resize(of_a.size());
    GatherElements(a, begin, end, of_a.data());
    GatherElements(b, begin, end, of_b.data());
    if (of_a != of_b) return false;
  }
  return true;
}

std::string ShapeText(const std::vector<int64_t>& shape) { return fmt::format("[{}]", fmt::join(shape, ", ")); }

WeightTensor WholeTensor(FileTensor tensor, int file) {
  WeightTensor out;
  out.name = std::move(tensor.name);
  out.dtype = tensor.dtype;
  out.shape = tensor.shape;
  WeightBlock block;
  block.begin.assign(out.shape.size(), 0);
  block.origin = block.begin;
  block.size = std::move(tensor.shape);
  block.data = tensor.data;
  block.strides = std::move(tensor.strides);
  block.dtype = out.dtype;
  block.file = file;
  if (out.elements() > 0) out.blocks.push_back(std::move(block));
  return out;
}

WeightBlock CutBlock(const WeightBlock& block, const BoxView& box) {
  WeightBlock out = block;
  std::vector<int64_t> inside(box.begin.size());
  for (size_t d = 0; d < inside.size(); ++d) inside[d] = box.begin[d] - block.begin[d];
  out.data = ElementAt(block, inside);
  out.begin = box.begin;
  out.size = box.size;
  // Dimensions that a part has lost stand before those that are left.
  const size_t lost = block.origin.size() - inside.size();
  for (size_t d = 0; d < inside.size(); ++d) out.origin[lost + d] += inside[d];
  return out;
}

bool Intersect(const WeightBlock& a, const WeightBlock& b, BoxView* out) {
  const size_t dims = a.begin.size();
  out->begin.resize(dims);
  out->size.resize(dims);
  for (size_t d = 0; d < dims; ++d) {
    const int64_t begin = std::max(a.begin[d], b.begin[d]);
    const int64_t end = std::min(a.begin[d] + a.size[d], b.begin[d] + b.size[d]);
    if (end <= begin) return false;
    out->begin[d] = begin;
    out->size[d] = end - begin;
  }
  return true;
}

WeightTensor SelectRanges(const WeightTensor& t, size_t dim, const std::vector<IndexRange>& ranges,
                          const std::string& part) {
  WeightTensor out = t;
  out.part = t.part.empty() ? part : part.empty() ? t.part : t.part + " " + part;
  out.blocks.clear();
  out.shape[dim] = 0;
  for (const auto& [begin, end] : ranges) {
    for (const WeightBlock& block : t.blocks) {
      const int64_t first = std::max(begin, block.begin[dim]), last = std::min(end, block.begin[dim] + block.size[dim]);
      if (last <= first) continue;
      BoxView box{block.begin, block.size};
      box.begin[dim] = first;
      box.size[dim] = last - first;
      out.blocks.push_back(CutBlock(block, box));
      out.blocks.back().begin[dim] = out.shape[dim] + first - begin;
    }
    out.shape[dim] += end - begin;
  }
  return out;
}

WeightTensor SelectFirst(const WeightTensor& t, int64_t index, const std::string& part) {
  WeightTensor out = SelectRanges(t, 0, {{index, index + 1}}, part);
  out.shape.erase(out.shape.begin());
  for (WeightBlock& block : out.blocks) {
    block.begin.erase(block.begin.begin());
    block.size.erase(block.size.begin());
    block.strides.erase(block.strides.begin());
  }
  return out;
}

WeightTensor Transposed(WeightTensor t) {
  if (t.shape.size() != 2) return t;
  std::swap(t.shape[0], t.shape[1]);
  t.transposed = !t.transposed;
  for (WeightBlock& block : t.blocks) {
    std::swap(block.begin[0], block.begin[1]);
    std::swap(block.size[0], block.size[1]);
    std::swap(block.strides[0], block.strides[1]);
    // Places are counted in the order of the dimensions now; whoever shows one exchanges them again.
    std::swap(block.origin[block.origin.size() - 2], block.origin.back());
  }
  return t;
}

WeightTensor Squeezed(WeightTensor t) {
  for (size_t d = t.shape.size(); d-- > 0;) {
    if (t.shape[d] != 1) continue;
    const auto drop = [d](std::vector<int64_t>* v) { v->erase(v->begin() + static_cast<int64_t>(d)); };
    drop(&t.shape);
    for (WeightBlock& block : t.blocks) {
      const size_t lost = block.origin.size() - block.begin.size();
      drop(&block.begin);
      drop(&block.size);
      drop(&block.strides);
      block.origin.erase(block.origin.begin() + static_cast<int64_t>(lost + d));
    }
  }
  return t;
}

StatusOr<WeightTensor> JoinAlong(size_t dim, const std::vector<WeightTensor>& parts) {
  WeightTensor out = parts.at(0);
  if (parts.size() == 1) return out;
  if (dim >= out.shape.size()) return BadInput(Msg("{} cannot be joined: it has too few dimensions", out.name));
  for (size_t i = 1; i < parts.size(); ++i) {
    const WeightTensor& next = parts[i];
    std::vector<int64_t> shape = next.shape;
    if (shape.size() == out.shape.size()) shape[dim] = out.shape[dim];
    if (shape != out.shape || next.dtype != out.dtype) {
      return BadInput(Msg("{} cannot be joined: its parts are {} of {} and {} of {}", out.name, ShapeText(out.shape),
                          DTypeName(out.dtype), ShapeText(next.shape), DTypeName(next.dtype)));
    }
    for (WeightBlock block : next.blocks) {
      block.begin[dim] += out.shape[dim];
      block.origin[dim] += out.shape[dim];
      out.blocks.push_back(std::move(block));
    }
    out.shape[dim] += next.shape[dim];
  }
  return out;
}

bool CountElements(const std::vector<int64_t>& shape, int64_t* out) {
  constexpr int64_t kMost = int64_t{1} << 44;
  if (shape.size() > static_cast<size_t>(kMaxDims)) return false;
  *out = 1;
  bool empty = false;
  for (const int64_t n : shape) {
    if (n < 0 || n > kMost) return false;
    empty |= n == 0;
    if (n > 0 && (__builtin_mul_overflow(*out, n, out) || *out > kMost)) return false;
  }
  if (empty) *out = 0;
  return true;
}

bool AddFlat(int64_t begin, int64_t count, const void* data, int file, WeightTensor* t) {
  if (begin < 0 || count < 0 || begin > t->elements() || count > t->elements() - begin) return false;
  const auto element = static_cast<int64_t>(ElementSize(t->dtype));
  const size_t dims = t->shape.size();
  const auto* at = static_cast<const char*>(data);
  std::vector<int64_t> strides(dims, 1);
  for (size_t d = dims; d-- > 1;) strides[d - 1] = strides[d] * t->shape[d];
  while (count > 0) {
    // The largest box that starts here: whole rows of the outermost dimension whose inner places are all zero.
    std::vector<int64_t> place(dims);
    for (size_t d = 0; d < dims; ++d) place[d] = begin / strides[d] % t->shape[d];
    size_t outer = dims > 0 ? dims - 1 : 0;
    while (outer > 0 && place[outer] == 0 && strides[outer - 1] <= count) --outer;
    WeightBlock block;
    block.begin = place;
    block.size.assign(dims, 1);
    int64_t taken = 1;
    if (dims > 0) {
      block.size[outer] = std::min(t->shape[outer] - place[outer], count / strides[outer]);
      for (size_t d = outer + 1; d < dims; ++d) block.size[d] = t->shape[d];
      taken = block.size[outer] * strides[outer];
    }
    block.origin = block.begin;
    block.strides = strides;
    block.data = at;
    block.dtype = t->dtype;
    block.file = file;
    t->blocks.push_back(std::move(block));
    begin += taken;
    count -= taken;
    at += taken * element;
  }
  return true;
}

bool IsCovered(const WeightTensor& t) {
  int64_t sum = 0;
  for (const WeightBlock& block : t.blocks) {
    for (size_t d = 0; d < t.shape.size(); ++d) {
      if (block.begin[d] < 0 || block.size[d] < 0 || block.begin[d] > t.shape[d] - block.size[d]) return false;
    }
    if (__builtin_add_overflow(sum, Product(block.size), &sum)) return false;
  }
  if (sum != t.elements()) return false;
  if (t.blocks.size() > kMostChecked) return true;
  BoxView box;
  for (size_t i = 0; i < t.blocks.size(); ++i) {
    for (size_t k = 0; k < i; ++k) {
      if (Intersect(t.blocks[i], t.blocks[k], &box)) return false;
    }
  }
  return true;
}

void GatherElements(const WeightTensor& t, int64_t begin, int64_t end, char* out) {
  const size_t element = ElementSize(t.dtype), dims = t.shape.size();
  std::vector<int64_t> strides(dims, 1);
  for (size_t d = dims; d-- > 1;) strides[d - 1] = strides[d] * t.shape[d];
  for (const WeightBlock& block : t.blocks) {
    const int64_t length = dims == 0 ? 1 : block.size[dims - 1];
    const int64_t rows = dims == 0 ? 1 : Product(block.size) / length;
    std::vector<int64_t> inside(dims, 0);
    // Where the row of this number begins in the tensor; larger numbers, later places.
    const auto place_row = [&](int64_t row) {
      int64_t flat = dims == 0 ? 0 : block.begin[dims - 1];
      for (size_t d = dims - (dims > 0 ? 1 : 0); d-- > 0; row /= block.size[d]) {
        inside[d] = row % block.size[d];
        flat += (block.begin[d] + inside[d]) * strides[d];
      }
      return flat;
    };
    int64_t first_row = 0;
    for (int64_t last_row = rows; first_row < last_row;) {
      const int64_t middle = first_row + (last_row - first_row) / 2;
      place_row(middle) + length <= begin ? first_row = middle + 1 : last_row = middle;
    }
    for (int64_t row = first_row; row < rows; ++row) {
      const int64_t flat = place_row(row);
      if (flat >= end) break;
      const int64_t first = std::max(begin, flat), last = std::min(end, flat + length);
      const int64_t step = dims == 0 ? 1 : block.strides[dims - 1];
      const char* from = ElementAt(block, inside) + (first - flat) * step * static_cast<int64_t>(element);
      char* to = out + static_cast<size_t>(first - begin) * element;
      if (step == 1) {
        std::memcpy(to, from, static_cast<size_t>(last - first) * element);
        continue;
      }
      for (int64_t i = first; i < last; ++i, to += element, from += step * static_cast<int64_t>(element))
        std::memcpy(to, from, element);
    }
  }
}

}  // namespace msprobe
