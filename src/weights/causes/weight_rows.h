// The rows of a weight as hashes of their values in one type, to find where values of one tensor lie in another.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/kernels/content_hash.h"
#include "weights/weight_tensor.h"

namespace msprobe {

/// A tensor as a matrix: its first dimension, and all others in one. A vector has rows of one element.
struct WeightRows {
  int64_t rows = 0, columns = 0;
  std::vector<uint64_t> hashes;  // of the rows
  uint64_t all = 0;              // of the hashes in order
};

/// Values rounded to `type`, a floating type; NaN and zeros of both signs have one form each.
WeightRows RowsOfWeight(const WeightTensor& tensor, DType type);
/// The same of the columns; empty for a tensor of more elements than fit in memory at once.
WeightRows ColumnsOfWeight(const WeightTensor& tensor, DType type);

/// All values; empty for a tensor of more than `most` elements.
std::vector<double> ValuesOfWeight(const WeightTensor& tensor, int64_t most);

/// False for a tensor that is too large to look at.
bool IsAllZero(const WeightTensor& tensor);

/// The coarser of two floating types: that of fewer digits, which both sides can be rounded to.
DType CoarserType(DType a, DType b);

}  // namespace msprobe
