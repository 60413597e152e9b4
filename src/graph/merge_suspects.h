// Which rank's part is to blame for a verdict about a merged node.
#pragma once

#include <string_view>
#include <vector>

#include "graph/merge_data.h"
#include "graph/precision.h"

namespace msprobe {

/// A finding of kind "suspect_rank" about the first row that did not pass and in which one part stands out against the
/// golden statistics; without ranks when none does. Results count where all that went in agrees, or another part has
/// the golden extreme: a difference that was made before shows in all parts, in no particular way.
MergeFinding FindSuspect(std::string_view node, const MergeNotes& notes, const std::vector<Row>& rows);

}  // namespace msprobe
