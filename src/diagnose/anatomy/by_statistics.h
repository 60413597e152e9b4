// Kinds that show in Max, Min, Mean and Norm, without the values.
#pragma once

#include "compare/values/item_view.h"
#include "diagnose/anatomy/anatomy.h"
#include "diagnose/anatomy/factor_name.h"

namespace msprobe {

/// Factor, sign, offset, zeros, bounds, a coarser dtype; an order where checksums differ and statistics do not.
Anatomy ExplainByStatistics(const ItemView& target, const ItemView& golden, const FactorContext& context);

/// Whether two items show the same: checksums, where the dumps have them, and statistics to the last digit.
bool SameStatistics(const ItemView& a, const ItemView& b);
/// Whether the statistics are more than a few round numbers: that another item has the same ones is no chance.
bool TellingStatistics(const ItemView& item);
/// The elements of the shape; 0 if it is not known.
int64_t ElementCount(const ItemView& item);

}  // namespace msprobe
