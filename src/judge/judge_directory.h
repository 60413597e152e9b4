// The files of all ranks of a monitored run, judged.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
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

/// How far the loss was judged by itself.
struct JudgedLoss {
  explicit JudgedLoss(const RunJudge& judge);
  /// Whether one leapt at a step that all were judged at.
  bool HasJudged(int64_t step) const;

  std::vector<LossWatch> watches;  // of each rank that has one
  size_t values = 0;               // of the rank with the fewest
  std::optional<int64_t> from;     // none: not judged
  std::optional<LossLeap> largest, open;
};

struct JudgedDirectory {
  std::string directory;
  size_t ranks = 0, watched = 0;
  int64_t steps = 0, last_step = -1;
  std::optional<JudgedLoss> loss;
  double alarm_strength = 0;
  std::vector<JudgedEvent> events;  // the one that does most harm first
  std::vector<RowChange> changes;   // weak ones, too
  std::vector<Message> notes;
  std::vector<RowName> rows;
  std::vector<std::string> left_out;   // directories of earlier runs
  std::vector<UnseenLaw> unseen_laws;  // looked at in part, or not
  size_t held_laws = 0;                // over all ranks
  std::string command;                 // that trains, as it is typed; empty: not known

  bool HasTable(std::string_view table) const;
  bool series_judged() const { return steps > static_cast<int64_t>(kJudgeWarmup); }
  bool loss_judged() const { return loss && loss->from; }
  /// So few steps that nothing could be judged, or that what the last losses do is not decided.
  bool too_early() const { return (!series_judged() && !loss_judged()) || (loss && loss->open); }
};

/// What was not judged, and what is not decided; empty: nothing.
Message NotJudgedText(const JudgedDirectory& judgement);

/// The command that tells more of the first event; empty: there is none, or all were given already.
Message NextText(const JudgedDirectory& judgement);

/// Of each rank the newest directory, and those that it goes on from. kBadInput when there is no monitor.series in
/// `directory` or a directory of it.
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
