// Which calls of a dump acc_check makes again, in the order of the dump.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "dump/reader.h"

namespace msprobe {

struct PlannedCall {
  std::string full;  // "Torch.linalg.inv.0"
  std::string api;   // "linalg.inv"
  size_t forward = 0;
  std::optional<size_t> backward;
  std::string skip;         // why it is not made; "" for the others
  bool collective = false;  // a communication, which only acc_check makes again; others skip it
};

struct CallFilter {
  std::set<std::string, std::less<>> black, white;  // names of functions; an empty white list has all
  std::set<std::string, std::less<>> done;          // full names that an interrupted check has judged
  bool once = false;                                // of calls with the same shapes and settings only the first
};

/// kBadInput when the dump holds no function. Modules are left out: their functions are in the dump.
StatusOr<std::vector<PlannedCall>> PlanCalls(const DumpFile& dump, const CallFilter& filter);

}  // namespace msprobe
