// What was found in a monitored run: anomalies of its rules and what judged it, as marks on the axis of steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace msprobe::view {

struct RunEvent {
  int64_t step = 0, rank = -1;  // -1: of no rank alone
  std::string series, text, source;
};

/// anomaly_detected/rank0/anomaly.json, anomaly_detected/anomaly_analyse.json and judgement.json below `directory`, by
/// step; what is not readable is left out. At most kMostEvents.
inline constexpr size_t kMostEvents = 2000;
std::vector<RunEvent> ReadRunEvents(const std::string& directory);

}  // namespace msprobe::view
