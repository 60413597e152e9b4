// One node in all graphs of a file.
#pragma once

#include <string_view>

#include "base/status.h"
#include "view/file/vis_file.h"
#include "view/query/answers.h"

namespace msprobe::view {

/// As the file has it, at most kMostCells cells.
StatusOr<NodeHistory> LoadHistory(const VisFile& file, Side side, std::string_view name);

}  // namespace msprobe::view
