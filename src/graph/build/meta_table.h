// What a graph file says of itself: the table msprobe_meta.
#pragma once

#include <string>

#include "base/status.h"
#include "graph/db/vis_db.h"

namespace msprobe {

/// The version of our tables and of the tool, and the paths of the dumps that are shown; `golden` is empty for one run
/// by itself.
Status WriteMeta(const std::string& target, const std::string& golden, VisDb* db);

}  // namespace msprobe
