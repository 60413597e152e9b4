// Which rank's part is to blame for a verdict about a merged node.
#pragma once

#include <string>
#include <vector>

#include "compare/values/diff_row.h"
#include "parallel/merge_data.h"

namespace msprobe {

/// A finding of kind kSuspectRank about the first row that did not pass, by more than rounding, and in which one part
/// stands out against the golden statistics; without ranks when none does. Results count where all that went in agrees,
/// or another part has the golden extreme: a difference that was made before shows in all parts, in no particular way.
MergeFinding FindSuspect(const MergeNotes& notes, const OpDiff& op);

/// Ranks whose part of an item is wrong for certain, the other parts being right.
struct WrongPart {
  std::string item;  // ".parameters.weight"
  std::vector<int> ranks;
};

/// Of the rows that differ by more than rounding, as far as statistics prove it: a copy among copies that agree, NaN,
/// values that the golden tensor does not have while another part has its extreme, a part that, scaled by one factor,
/// gives all golden statistics, or, where the golden ranks split the tensor alike, the part that is not its partner's.
/// Calls of experts that no module tells are of the ranks that have these.
std::vector<WrongPart> FindWrongParts(const MergeNotes& target, const MergeNotes& golden, const OpDiff& op);

}  // namespace msprobe
