// The files of all ranks of a monitored run, judged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "judge/law_file.h"
#include "judge/run_judge.h"
#include "judge/who_began.h"
#include "judgement/judgement.h"

namespace msprobe {

struct JudgeRequest {
  std::string directory;
  std::vector<std::pair<int64_t, double>> loss;   // (step, value), where the monitor has none
  std::vector<std::pair<int64_t, double>> rates;  // (step, learning rate), where a log has it
  JudgeOptions options;
};

struct JudgedDirectory {
  std::string directory;
  size_t ranks = 0, watched = 0;
  int64_t steps = 0, last_step = -1;
  bool has_loss = false;
  double alarm_strength = 0;
  std::vector<JudgedEvent> events;
  std::vector<RowChange> changes;  // weak ones, too
  std::vector<Message> notes;
  std::vector<RowName> rows;
  std::vector<UnseenLaw> unseen_laws;  // looked at in part, or not
  size_t held_laws = 0;                // over all ranks

  /// So few steps that the series say nothing yet.
  bool too_early() const;
};

/// Why it says little, if it is too early.
Message TooEarlyText(const JudgedDirectory& judgement);

/// Of each rank the newest directory. kBadInput when there is no monitor.series in `directory` or a directory of it.
StatusOr<JudgedDirectory> JudgeDirectory(const JudgeRequest& request);

/// One line: what began, where, how, on which rank, and how long before the loss.
Message EventText(const JudgedEvent& event, const JudgedDirectory& judgement);
/// What is concluded of the series and of each law.
std::vector<Judgement> JudgementsOf(const JudgedDirectory& judgement);
/// One JSON object on one line.
std::string EventJson(const JudgedEvent& event, const JudgedDirectory& judgement);
Message JudgementText(const JudgedDirectory& judgement);
std::string JudgementJson(const JudgedDirectory& judgement);

}  // namespace msprobe
