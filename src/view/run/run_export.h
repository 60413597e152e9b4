// A monitored run as a page without a server holds it; web/src/api/exported_runs.ts reads it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "view/run/open_rank.h"
#include "view/run/run_events.h"

namespace msprobe::view {

struct ExportedRun {
  std::string json;
  uint64_t series = 0;          ///< of the rank that has most
  int64_t steps_of_column = 1;  ///< of the coarsest
};

/// The norm of each metric, or else its first statistic, in at most `most_cells` stretches of steps of all series.
StatusOr<ExportedRun> ExportRun(const std::vector<std::pair<int64_t, std::shared_ptr<OpenRank>>>& ranks,
                                const std::vector<RunEvent>& events, int64_t changed, size_t most_cells);

}  // namespace msprobe::view
