// Two tensors that two implementations of a model lay out differently: [s, b, h] and [b, s, h], heads ahead of the
// sequence or behind it, batch and sequence in one dimension.
#pragma once

#include <string>
#include <vector>

#include "tensor/files/file_tensor.h"

namespace msprobe {

/// Both tensors seen with the same dimensions; nothing is copied.
struct OrderedPair {
  FileTensor target, golden;
  bool alike = false;  // their shapes are the same anyway
  std::string order;   // "Bench dimensions in the order (1, 0, 2)"; "" as they lie
};

/// All ways in which the dimensions of one side in another order, some of them cut, are those of the other. Dimensions
/// of 1 count for nothing. None where the numbers of elements differ; only the first of many where there are.
std::vector<OrderedPair> PossibleOrders(const FileTensor& target, const FileTensor& golden);

/// The one of them by which the two agree best, found out by a part of their elements; null without any. The order in
/// which they lie stays where no other one fits clearly better.
const OrderedPair* BestOrder(const std::vector<OrderedPair>& orders);

/// How far the two are apart by a part of their elements, against the larger of them: 0 for equal tensors, about 1.4
/// for those that have nothing to do with each other.
double SampledError(const OrderedPair& pair);

}  // namespace msprobe
