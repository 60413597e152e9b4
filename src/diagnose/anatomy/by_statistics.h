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
/// Whether the mean of `earlier` is more than rounding beside that of `golden`.
bool MeanTells(const ItemView& target, const ItemView& golden, const ItemView& earlier);
/// Whether it is, and `target` may be the sum of both: means add up as values do, to what the rounding of sums leaves;
/// a norm lies between those that the parts allow. `factor`: of `earlier`, as clipping leaves it.
bool MeansAddUp(const ItemView& target, const ItemView& golden, const ItemView& earlier, double factor = 1);
/// The elements of the shape; 0 if it is not known.
int64_t ElementCount(const ItemView& item);

}  // namespace msprobe
