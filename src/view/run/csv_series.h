// The csv files of a training monitor read as a file of series.
#pragma once

#include <optional>
#include <string>

#include "base/status.h"
#include "monitor/series_reader.h"

namespace msprobe::view {

/// The metric of "grad_reduced_0-9.csv", "" for another file.
std::string MetricOfCsv(std::string_view file);

/// Nothing when `directory` has no csv file of a monitor. What cannot be read is left out.
StatusOr<std::optional<SeriesFile>> SeriesOfCsv(const std::string& directory);

}  // namespace msprobe::view
