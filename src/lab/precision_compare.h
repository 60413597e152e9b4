// What `msprobe api_precision_compare` does: two details files of acc_check, row by row, into two tables.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"
#include "lab/standards/standard.h"

namespace msprobe {

struct PrecisionCompareSettings {
  std::string npu, gpu;  // accuracy_checking_details_*.csv
  std::string output = "./output";
  StandardRelease release = StandardRelease::k26;
};

struct PrecisionCompareReport {
  std::string result, details;                               // files
  uint64_t passed = 0, warned = 0, failed = 0, skipped = 0;  // functions
  std::vector<Message> warnings;
};

StatusOr<PrecisionCompareReport> ComparePrecision(const PrecisionCompareSettings& settings);

}  // namespace msprobe
