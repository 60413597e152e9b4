// What differs in an item of a call, in the words of the dumps.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "compare/describe/differences.h"
#include "compare/pair/op_at.h"

namespace msprobe {

/// Of a row: the shape, the checksum, the values, or the statistic that tells most.
ItemDifference DifferenceOf(const OpDiff& op, size_t row, CompareMode mode);

/// "Norm differs by 12.3 %".
std::string DetailOf(const ItemDifference& d);

/// Whether a row has the same extremes and no more than the last digits of its sums differ, as those of the same values
/// in other places.
bool IsReordered(const OpDiff& op, size_t row);

/// The other input of the call with which an input changed its place, by the statistics of both; "" for none.
std::string ExchangedWith(const OpDiff& op, size_t row);

/// Equal for tensors that the dump shows no difference between. "" for what says too little to know it again: single
/// numbers, and tensors of one value.
std::string LooksOf(const ItemView& item);

/// Largest relative error over the inputs of an op; in another mode without what a norm keeps.
double InputErrorOf(const OpDiff& op, CompareMode mode, bool other_mode);

/// "weight" of ".input.1" of a call with these items; "" where the name is not known.
std::string_view NameOfArgument(std::string_view op, std::span<const ItemView> items, std::string_view item);

/// Fills what is told of an item: its name, and the one that the function has for it.
void SetItem(const OpDiff& diff, const ItemView& item, FirstDifference* out);

/// The argument that differs first.
void DescribeArgument(const OpDiff& diff, CompareMode mode, FirstDifference* out);

/// The first tensor of another dtype.
void DescribeDType(const OpDiff& diff, FirstDifference* out);

}  // namespace msprobe
