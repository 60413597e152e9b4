// What `msprobe run_overflow_check` does: calls whose results overflowed are made again, and it is said whether they
// had to.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

enum class OverflowCause : uint8_t {
  kExpected,    // the exact result is beyond the dtype, too: the inputs are the cause
  kUnexpected,  // the exact result is finite in the dtype, and the call on this device is not: the function is the
                // cause
  kGone,        // neither: what was recorded does not come again on this device
  kUnknown,     // the call cannot be made again
};
std::string_view OverflowCauseText(OverflowCause cause);

struct OverflowedCall {
  std::string full;  // "Torch.exp.0"
  OverflowCause cause = OverflowCause::kUnknown;
  std::string why;  // of kUnknown
};

struct OverflowReplay {
  std::string device;
  uint64_t calls = 0;  // of the dump
  std::vector<OverflowedCall> overflowed;
};

/// Of the calls of the dump.json at `dump` whose forward results have NaN or infinities.
StatusOr<OverflowReplay> ReplayOverflows(const std::string& dump, const std::string& device);

}  // namespace msprobe
