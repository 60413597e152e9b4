// Which state of a training a resume did not restore: states before a step of a killed and of the resumed run,
// compared.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "certify/certificate.h"
#include "json/value.h"

namespace msprobe {

/// One kind of state that is not as it was.
struct LostState {
  std::string kind;    // of python/msprobe/_attach/states.py: "optimizer", "batch_norm", ...
  uint64_t count = 0;  // of names
  std::string example, was, is;
  bool missing = false;     // nothing of that name is there any more
  bool all_first = false;   // every value is that of the first step of the training
  std::string explanation;  // "" without
};

/// The word for people: "state of the optimizer".
std::string_view StateWord(std::string_view kind);

enum class ResumeOutcome : uint8_t {
  kEqual,            // everything is as if the run had never been killed
  kThroughOther,     // its states are, but its steps differ, because another rank has lost some
  kFrameworkDraws,   // restored, but the framework has drawn random numbers since: cannot be equal bit by bit
  kLost,             // some state was not restored
  kUnexplained,      // no state known to msprobe was lost, yet the steps compute something else
  kNotReproducible,  // the two runs differ before the script saves
};

struct RankResume {
  std::string rank;
  ResumeOutcome outcome = ResumeOutcome::kEqual;
  std::vector<LostState> lost;
  std::vector<LostState> drawn;     // by the framework, after they were restored
  std::vector<LostState> suspects;  // numbers of the script that differ: state only if it uses them
  std::vector<std::string> unjudged;
  bool inside = false;                         // the script saves inside of a step, before its optimizer has stepped
  uint64_t compared = 0;                       // states
  int64_t steps = 0;                           // compared after the resume
  std::optional<RunDifference> before, after;  // first difference of two runs before the save, and after the resume
  std::string noticed;                         // the first op that noticed; ""
  int64_t noticed_step = -1;
};

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

std::string_view ResumeOutcomeText(ResumeOutcome outcome);

}  // namespace msprobe
