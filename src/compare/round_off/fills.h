// Numbers that stand for "nothing here" rather than for a value: what masks are filled with.
#pragma once

#include "compare/values/item_view.h"

namespace msprobe {

/// The least or largest number of a dtype, whichever it is.
bool IsDTypeLimit(double magnitude);

/// Infinities, limits of dtypes and round negative numbers such as -1e4 and -1e9: what is added to, or put in place of,
/// scores that a softmax is to leave out.
bool IsFill(double value);

/// Whether both are fills of one sign: that they differ means nothing.
bool BothFills(const StatValue& a, const StatValue& b);

/// Whether the least value of a floating tensor is a fill and nothing else in it is nearly as large.
bool HoldsFill(const ItemView& item);

/// Whether truth values are of both kinds, by their Max and Min.
bool HoldsBoth(const ItemView& item);

/// The largest magnitude of what is no fill.
double AmplitudeWithoutFill(const ItemView& item);

/// Two tensors that are filled differently: only what is beside the fill can be compared by their statistics.
bool FilledOtherwise(const ItemView& a, const ItemView& b);

}  // namespace msprobe
