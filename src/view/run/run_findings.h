// Monitored runs that are looked at, judged again as they grow. Thread-safe.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/message.h"
#include "view/run/run_events.h"

namespace msprobe::view {

struct RunFindings {
  std::vector<RunEvent> events;
  bool judging = false;  ///< there may be more soon
  Message unjudged;      ///< why the series say nothing; "" where they were judged
};

class RunJudgements {
 public:
  RunJudgements();
  ~RunJudgements();
  /// What is known of the run at `path`: the anomalies that it wrote, and what its series show, or the file
  /// judgement.json where that is newer. `version` is another one when the run has grown. A run is judged beside what
  /// is answered; the first answer waits a moment for it.
  RunFindings Of(const std::string& path, uint64_t version, std::chrono::milliseconds patience);

 private:
  struct Shared;
  std::shared_ptr<Shared> shared_;  // of the threads, too, which may end later
};

}  // namespace msprobe::view
