// Whether a process of this host has ended.
#pragma once

#include <cstdint>
#include <optional>

namespace msprobe {

struct ProcessStat {
  char state = 0;      // 'R', 'S', 'Z' and so on
  uint64_t start = 0;  // in ticks since the host started
};
/// Of /proc; nothing when it is not there.
std::optional<ProcessStat> StatOfProcess(int64_t pid);

/// True also for one that was killed and that nobody has waited for yet, as in a container whose first process waits
/// for none.
bool ProcessGone(int64_t pid);

}  // namespace msprobe
