// The parts of a record by what they are, whatever the program that wrote it calls them.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "rollout/records/record_value.h"

namespace msprobe {

/// "tokens", "rollout", ... of record_programs.def.
using RecordParts = std::map<std::string, RecordValue, std::less<>>;

struct ProgramRecords {
  std::string program;
  std::vector<RecordParts> rows;  // one a request
};

/// Requests of a record, which may be a batch of many. Empty where it holds neither ids, nor log-probabilities, nor the
/// texts of a known program.
ProgramRecords PartsOf(const RecordValue& record);

}  // namespace msprobe
