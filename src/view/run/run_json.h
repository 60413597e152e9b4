// The answers about monitored runs as the page receives them; docs/page_api.md describes each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "monitor/run_status.h"
#include "view/run/open_rank.h"
#include "view/run/run_cache.h"
#include "view/run/run_findings.h"

namespace msprobe::view {

/// `status`: of the heartbeats, where the run has some.
std::string RunJson(const std::vector<int64_t>& ranks, const RunInfo& info, int64_t changed,
                    const std::optional<RunStatus>& status);
std::string ToJson(const RunRowsAnswer& answer);
/// Values as base64 of float32, row by row. `whole`: lowest, highest and mean of each cell instead of one number.
std::string TileJson(const RunTile& tile, CellView view, bool whole);
std::string ToJson(const RunFindings& findings);

}  // namespace msprobe::view
