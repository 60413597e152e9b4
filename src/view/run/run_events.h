// What was found in a monitored run: anomalies of its rules and what judged it, as marks on the axis of steps.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace msprobe::view {

struct RunEvent {
  int64_t step = 0, rank = -1;  // -1: of no rank alone
  std::string series, text, source;
  std::string text_zh;            ///< "" where there is only the one
  std::string metric, stat;       ///< what shows it; "" where nothing of the series does
  std::vector<std::string> rows;  ///< labels of the series that began it
  bool leads = false;             ///< of all that judged the run found, what does most harm
};

/// anomaly_detected/rank0/anomaly.json, anomaly_detected/anomaly_analyse.json and judgement.json below `directory`, by
/// step; what is not readable is left out. At most kMostEvents. `judged`: judgement.json, too.
inline constexpr size_t kMostEvents = 2000;
std::vector<RunEvent> ReadRunEvents(const std::string& directory, bool judged);

}  // namespace msprobe::view
