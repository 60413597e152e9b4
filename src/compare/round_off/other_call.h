// Modules in the place of one of another class, whose calls take other arguments.
#pragma once

#include "compare/values/op_diff.h"

namespace msprobe {

/// Of two programs for one model: a module of another class at the same place is handed other tensors (positions for
/// the hidden state that only told their number), and what it gives fits. Its arguments by their position say nothing,
/// its parameters and what it gives do. Of a backward call the gradients of what it was given are such arguments.
bool IsOtherCall(const OpDiff& op);

/// Whether the item is such an argument.
bool IsArgumentOfCall(std::string_view op, ItemState state);

/// Whether two tensors have the same elements but for dimensions of 1, or in another grouping.
bool ShapesFit(const ItemView& a, const ItemView& b);

}  // namespace msprobe
