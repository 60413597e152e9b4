// Kinds that change each value where it stands.
#pragma once

#include "diagnose/anatomy/anatomy.h"
#include "diagnose/anatomy/factor_name.h"
#include "diagnose/anatomy/value_pair.h"

namespace msprobe {

/// NaN and infinities, zeros, a coarser dtype, factor, sign, offset, bounds: the first that leaves nothing but
/// rounding.
Anatomy ExplainByValue(const ValuePair& pair, const FactorContext& context);

/// The axis of which the fewest entries differ, when not all of any do; axis -1 otherwise.
AxisPart DifferingPart(const ValuePair& pair);

}  // namespace msprobe
