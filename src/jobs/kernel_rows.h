// The rows of a comparison of kernel dumps.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "import/kernel_dump.h"
#include "jobs/kernel_story.h"

namespace msprobe {

struct KernelPair {
  const KernelTensor *target = nullptr, *golden = nullptr;  // one may be null
};

struct KernelRow {
  std::vector<std::string> cells;  // as KernelTitles()
  std::string_view accuracy;       // "Yes", "No", "None", ""
  bool unread = false;
  std::optional<KernelFinding> finding;  // of two tensors with values
};

/// Type, shape and statistics of a tensor, from its line or its file.
StatusOr<KernelFigures> MeasureKernel(const KernelTensor& kernel);

std::vector<std::string> KernelTitles(bool tensors);
/// Of two files of numpy. `csv`: texts as csv files have them.
KernelRow ArrayRow(const KernelPair& pair, bool csv);
/// Of two lines of statistic.csv.
KernelRow StatisticRow(const KernelPair& pair, bool csv);

}  // namespace msprobe
