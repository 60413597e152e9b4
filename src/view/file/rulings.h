// What the ruler says of the nodes of a target: the column `verdict` of msprobe_precision.
#pragma once

#include <cstdint>
#include <string_view>

#include "base/status.h"
#include "compare/round_off/ruler.h"
#include "view/file/tree.h"
#include "view/file/vis_file.h"

namespace msprobe::view {

/// Of the text in the file; kNone for "N/A" and for what no tool writes.
RulerVerdict RulerVerdictOf(std::string_view text);

/// Nothing where the file has no such table.
Status LoadRulings(const VisFile& file, Tree* tree);

/// Of nodes that have a partner. Collections are no ops.
RulerCounts CountRulings(const Tree& tree);

}  // namespace msprobe::view
