// `msprobe compare -m atb`: the dumps of ATB, Ascend's library of transformer operators. A dump is a directory with
// statistic.csv, a row for each tensor, and, when values were dumped, their files.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct AtbReport {
  std::string path;  // of the workbook
  bool tensors = false;
  uint64_t rows = 0, target_only = 0, golden_only = 0;
  uint64_t unread = 0;       // rows of which a file could not be read
  std::string first_unread;  // why, of the first
  std::vector<Message> warnings;
};

/// Writes atb_tensor_compare_result_TIME.xlsx (or atb_stats_...) into `output`. Tensors pair by name, execution and
/// order. kBadInput for what is no such dump, for two of different kinds, and when they have nothing in common.
StatusOr<AtbReport> CompareAtb(const std::string& target, const std::string& golden, const std::string& output);

}  // namespace msprobe
