// All ops without a partner, of both runs, as a table of its own.
#pragma once

#include <string>
#include <vector>

#include "compare/pair/dump_pair.h"

namespace msprobe {

/// csv, or a workbook when `path` says so; returns the files. Ops stand in the order of their run, the target's first.
StatusOr<std::vector<std::string>> WriteUnmatched(const DumpPair& pair, const std::string& path);

}  // namespace msprobe
