// A tensor of a checkpoint, whole however it is stored: boxes of it lie in files, and none is copied.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "tensor/files/file_tensor.h"

namespace msprobe {

/// A box of a tensor that lies in one file.
struct WeightBlock {
  std::vector<int64_t> begin, size;  // in the tensor; as many as it has dimensions
  const void* data = nullptr;
  std::vector<int64_t> strides;  // in elements
  DType dtype = DType::kUnknown;
  int file = 0;                 // of Checkpoint::files
  std::vector<int64_t> origin;  // of its first element in the tensor that has the name, before any part was taken
  TensorView view() const { return {data, dtype, static_cast<int>(size.size()), size.data(), strides.data()}; }
};

struct WeightTensor {
  std::string name;
  std::string part;  // "q", "gate", "expert 3": of the tensor of that name; else empty
  DType dtype = DType::kUnknown;
  std::vector<int64_t> shape;
  std::vector<WeightBlock> blocks;
  bool transposed = false;  // its two dimensions are exchanged against the named tensor
  double plus = 0;          // is added to every element before it means the same as elsewhere (norms centred on zero)

  int64_t elements() const;
  uint64_t bytes() const;
  /// "name", "name[q]"
  std::string label() const { return part.empty() ? name : name + "[" + part + "]"; }
};

/// [first, second)
using IndexRange = std::pair<int64_t, int64_t>;

WeightTensor WholeTensor(FileTensor tensor, int file);

/// The ranges of dimension `dim`, one behind the other.
WeightTensor SelectRanges(const WeightTensor& t, size_t dim, const std::vector<IndexRange>& ranges,
                          const std::string& part);
/// One index of the first dimension, which goes.
WeightTensor SelectFirst(const WeightTensor& t, int64_t index, const std::string& part);
WeightTensor Transposed(WeightTensor t);
/// Without dimensions of length 1.
WeightTensor Squeezed(WeightTensor t);
/// Tensors of one dtype that differ in dimension `dim` only, one behind the other. kBadInput for all others.
StatusOr<WeightTensor> JoinAlong(size_t dim, const std::vector<WeightTensor>& parts);

/// False for a shape that no tensor has: a negative size, too many dimensions or elements.
bool CountElements(const std::vector<int64_t>& shape, int64_t* out);

/// Adds `count` elements that lie one behind the other at `data` as those from `begin` on, in C order. False where they
/// lie outside of the tensor.
bool AddFlat(int64_t begin, int64_t count, const void* data, int file, WeightTensor* t);

/// True when every element lies in exactly one block.
bool IsCovered(const WeightTensor& t);

/// A box and where its first element lies.
struct BoxView {
  std::vector<int64_t> begin, size;
};
/// The block's elements in `box`, which lies in it.
WeightBlock CutBlock(const WeightBlock& block, const BoxView& box);
/// False when they have nothing in common.
bool Intersect(const WeightBlock& a, const WeightBlock& b, BoxView* out);

/// Elements [begin, end), in C order, as `t.dtype`, into `out`, which has room for them.
void GatherElements(const WeightTensor& t, int64_t begin, int64_t end, char* out);

/// Its values are not there: engines that pack a weight elsewhere, and shards that were not gathered, leave a tensor
/// without elements.
bool IsAbsent(const WeightTensor& t);

/// The same type, shape and bytes.
bool HaveSameBits(const WeightTensor& a, const WeightTensor& b);

std::string ShapeText(const std::vector<int64_t>& shape);

}  // namespace msprobe
