// What is wrong with a dump.
#pragma once

#include <cstdint>
#include <string>

#include "base/message.h"

namespace msprobe {

/// One kind of trouble at one place. A note is worth knowing and may be meant so (a gap in the numbers where the run
/// filtered by name); it does not count as a finding.
struct VerifyFinding {
  std::string kind;  // "truncated", "tensor_missing", ...
  uint64_t count = 1;
  Message text;  // one line: what, and the first names
  bool note = false;
};

}  // namespace msprobe
