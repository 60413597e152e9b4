// What a layer mapping came to, as files: which op, and which item, stands against which, and where the ops are.
#pragma once

#include <string>
#include <vector>

#include "compare/pair/dump_pair.h"

namespace msprobe {

/// Writes api_mapping`end` and data_mapping`end` into `folder`: lines "name of the target: name of the golden run",
/// with N/A where there is no partner; and {framework}_tree`end` of the target, {framework}_tree_golden`end` of a
/// golden run of the same framework. `plain`: as the old tool leaves them, whose tree of such a golden run takes the
/// place of the target's.
Status WriteMappings(DumpPair* pair, const std::string& folder, const std::string& end, bool plain,
                     std::vector<std::string>* paths);

}  // namespace msprobe
