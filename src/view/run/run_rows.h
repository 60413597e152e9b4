// Which series stand in one row of a map: each by itself, or those of a layer together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "view/run/rank_series.h"

namespace msprobe::view {

struct RunRow {
  std::string label;
  std::vector<uint32_t> members;  // rows of the metric
};

enum class RunFold : uint8_t { kNone, kLayer };

/// "model.layers.3" of "model.layers.3.mlp.weight"; what has no number stands for itself.
std::string_view LayerOf(std::string_view name);

/// In natural order: layers.2 before layers.10. `text`: a part of the names, in either case.
std::vector<RunRow> MakeRunRows(const RunMetric& metric, RunFold fold, std::string_view text);

/// "layers.0.fc.weight vpp 1 #2": a series by its name.
std::string SeriesLabel(std::string_view name, int64_t vpp_stage, int64_t micro_step);

}  // namespace msprobe::view
