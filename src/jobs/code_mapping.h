// `msprobe code_mapping`: from the kernels of a dump to the lines of source that they come from.
#pragma once

#include <string>

#include "base/status.h"

namespace msprobe {

struct CodeMappingSettings {
  std::string ir;      // the graph as text
  std::string dump;    // a directory of .npy files, one such file, or a statistic.csv
  std::string output;  // of the table; a statistic.csv gets its columns where it is
};

struct CodeMappingReport {
  std::string path;  // what was written
  uint64_t rows = 0, found = 0;
};

/// Files: code_mapping_TIME.csv, a row for each. statistic.csv: two more columns in the file itself, which is replaced
/// whole or not at all. kBadInput when the dump holds no kernel.
StatusOr<CodeMappingReport> MapCode(const CodeMappingSettings& settings);

}  // namespace msprobe
