// Which state of a training a resume did not restore: states before a step of a killed and of the resumed run,
// compared.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "certify/rank_resume.h"
#include "json/value.h"

namespace msprobe {

/// What the three runs of one rank say. `save_at`: steps that were done when the run was killed.
StatusOr<RankResume> JudgeResume(const std::string& rank, int64_t save_at, const JsonValue& straight,
                                 const JsonValue& killed, const JsonValue& resumed);

struct ResumeReport {
  std::string command, resume_command, created, python, torch;
  int64_t save_at = 0;
  bool loaded = false;  // the resumed run has read a file by torch.load()
  std::vector<RankResume> ranks;
  ResumeOutcome outcome() const;
  /// The worst of the ranks whose states are not as they were; kEqual without one.
  ResumeOutcome CauseElsewhere() const;
  Message Verdict() const;
  std::string Json() const;
  std::string Markdown() const;
};

}  // namespace msprobe
