// The files of all ranks of a monitored run, judged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "judge/run_judge.h"
#include "judge/who_began.h"

namespace msprobe {

struct JudgeRequest {
  std::string directory;
  std::vector<std::pair<int64_t, double>> loss;  // (step, value), where the monitor has none
  JudgeOptions options;
};

struct Judgement {
  std::string directory;
  size_t ranks = 0, watched = 0;
  int64_t steps = 0, last_step = -1;
  bool has_loss = false;
  double alarm_strength = 0;
  std::vector<JudgedEvent> events;
  std::vector<RowChange> changes;  // weak ones, too
  std::vector<Message> notes;
  std::vector<RowName> rows;
};

/// Of each rank the newest directory. kBadInput when there is no monitor.series in `directory` or a directory of it.
StatusOr<Judgement> JudgeDirectory(const JudgeRequest& request);

/// One line: what began, where, how, on which rank, and how long before the loss.
Message EventText(const JudgedEvent& event, const Judgement& judgement);
/// One JSON object on one line.
std::string EventJson(const JudgedEvent& event, const Judgement& judgement);
Message JudgementText(const Judgement& judgement);
std::string JudgementJson(const Judgement& judgement);

}  // namespace msprobe
