// Which rank's part is to blame for a verdict about a merged node.
#pragma once

#include "compare/values/diff_row.h"
#include "parallel/merge_data.h"

namespace msprobe {

/// A finding of kind kSuspectRank about the first row that did not pass, by more than rounding, and in which one part
/// stands out against the golden statistics; without ranks when none does. Results count where all that went in agrees,
/// or another part has the golden extreme: a difference that was made before shows in all parts, in no particular way.
MergeFinding FindSuspect(const MergeNotes& notes, const OpDiff& op);

}  // namespace msprobe
