// The csv files of a training monitor read as a file of series.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "monitor/series_reader.h"

namespace msprobe::view {

/// The metric of "grad_reduced_0-9.csv", "" for another file.
std::string MetricOfCsv(std::string_view file);

/// Rows that were cut, as where the run was killed: they are left out.
struct CutRows {
  uint64_t count = 0;
  std::string file;  // that has the first
};

/// Nothing when `directory` has no csv file of a monitor. What cannot be read is left out; cut rows are added to `cut`.
StatusOr<std::optional<SeriesFile>> SeriesOfCsv(const std::string& directory, CutRows* cut);

}  // namespace msprobe::view
