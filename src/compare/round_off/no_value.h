// Items that hold no values of the two runs: memory that nobody wrote, arguments that nobody reads, other parts.
#pragma once

#include "compare/values/op_diff.h"

namespace msprobe {

/// Outputs, gradients of parameters and saved values: what an op leaves behind. The rest is what it starts from.
bool IsResult(ItemState state);

/// The golden item of a row; null without one.
const ItemView* PartnerOf(const OpDiff& op, size_t row);

/// Of an item with a shape and elements of a known type.
bool IsTensorItem(const ItemView& item);

/// An argument by name that changes no value (SaysHow).
bool SaysHowOnly(const ItemView& item);

/// Of an argument that one run alone gives: it is what PyTorch takes where nothing is given, or the other run gives the
/// same by its place or by its name, or the same mask in another form.
bool SaysTheSame(const OpDiff& op, const ItemView& item, bool of_golden);

/// Nothing of either run is in them, or nothing of them gets into it, or one has the other's values and zeros, or they
/// are a bias beside which the results round away.
bool IsNoValue(const OpDiff& op, size_t row);

/// An input that is read, and of which a part at least is memory that nobody had written in either run.
bool IsUnwrittenInput(const OpDiff& op, size_t row);

}  // namespace msprobe
