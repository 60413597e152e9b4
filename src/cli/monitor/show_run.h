// A monitored run as text: layers over steps in shades, and plots of series.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/message.h"
#include "base/status.h"

namespace msprobe {

struct ShowRunRequest {
  std::string directory, metric, stat;
  std::string series;           // a part of the names of series to plot; "": all layers in shades
  std::string steps;            // "400-440"; "": all
  std::optional<int64_t> rank;  // none: the first
  bool all_series = false;      // instead of layers
  size_t width = 0;             // columns of the terminal; 0: as it is
  size_t height = 16;           // rows of a plot
  bool blocks = true;           // shades as block characters, else ASCII
};

/// kBadInput when the directory has no such run, rank, metric or statistic.
StatusOr<Message> ShowRun(const ShowRunRequest& request, bool as_json);

}  // namespace msprobe
