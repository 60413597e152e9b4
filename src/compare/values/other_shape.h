// Two tensors of two frameworks that hold the same elements in different shapes.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "compare/values/item_view.h"

namespace msprobe {

enum class OtherShape : uint8_t {
  kNone,        // they have nothing in common
  kSame,        // but for dimensions of 1
  kRegrouped,   // the elements in the same order: [2, 8, 32] and [16, 32]
  kTransposed,  // the last two dimensions exchanged: weights of x @ w and of a linear layer
};

/// `transposes`: whether exchanged dimensions count, as they do for parameters only. An output that is transposed is
/// another output.
OtherShape CompareShapes(std::span<const int64_t> a, std::span<const int64_t> b, bool transposes);

/// A parameter, its gradient, what a product multiplies by, or what a function's backward gives, which may be the
/// gradient of such a one.
bool MayBeTransposed(const ItemView& item);

}  // namespace msprobe
