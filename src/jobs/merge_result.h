// The comparison results of several ranks side by side: a sheet for each metric, a row for each item, a column for each
// rank.
#pragma once

#include <string>
#include <vector>

#include "base/message.h"
#include "dump/gaps.h"

namespace msprobe {

struct MergeSettings {
  std::string input;   // directory with compare_result_rank{N}_{time}.csv or .xlsx
  std::string output;  // directory
  std::string config;  // YAML: api, compare_index
};

struct MergeReport {
  std::string path;
  std::vector<int> ranks;
  std::vector<std::string> metrics;
  uint64_t rows = 0;
  std::vector<Message> warnings;
  std::vector<RecordingGap> gaps;  // dumps behind the results that were not whole, as the comparison left it on record
  uint64_t unread = 0;             // rows whose tensors it could not read
  bool whole() const { return gaps.empty() && unread == 0; }
};

StatusOr<MergeReport> MergeResults(const MergeSettings& settings);

}  // namespace msprobe
