// What the parts of a merged tensor are, by the tensor that stands against it: pieces, copies or summands of it.
#pragma once

#include "compare/round_off/ruler.h"
#include "compare/values/op_diff.h"
#include "parallel/layout_difference.h"
#include "parallel/merge_data.h"

namespace msprobe {

/// Puts the statistics of both sides together so that they are of the same whole. Equal statistics do not prove copies:
/// the number of elements on the other side tells. What cannot be put together (summands, what each rank has for
/// itself) is marked ItemView::other_part and counts for nothing. The notes say what was decided. The target's
/// gradients are first divided by `gradients` (gradient_scale.h).
void FitParts(const LayoutDifference& layouts, MergeNotes* target, MergeNotes* golden, OpDiff* op);

/// In another layout sizes and indices are others as well, but not the data that a module is given: takes the rest out
/// of the distance of `op`.
void LeaveOutIndices(const OpDiff& op, OpDistance* distance);

/// The statistics of an item.
TensorStats StatsOf(const ItemView& item);

/// Whether `whole` can be the sum of `one` and `other`, which are items of `op` or of one like it.
bool AreSummands(const OpDiff& op, const ItemView& one, const ItemView& other, const ItemView& whole);

}  // namespace msprobe
