// What of one rank a resume did not restore.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "certify/certificate.h"

namespace msprobe {

/// One name that is not as it was.
struct LostName {
  std::string name, was, is;
  bool first = false;  // its value is that of the first step of the training
};

/// One kind of state that is not as it was.
struct LostState {
  std::string kind;             // of python/msprobe/_attach/states.py: "optimizer", "batch_norm", ...
  std::vector<LostName> names;  // what decides most first
  std::string explanation;      // "" without
  /// Nothing of the first name is there any more.
  bool missing() const { return !names.empty() && names[0].is == "missing"; }
  /// Every value is that of the first step of the training.
  bool all_first() const {
    return std::all_of(names.begin(), names.end(), [](const LostName& n) { return n.first; });
  }
};

/// The word for people: "state of the optimizer".
std::string_view StateWord(std::string_view kind);

enum class ResumeOutcome : uint8_t {
  kEqual,            // everything is as if the run had never been killed
  kThroughOther,     // its states are, but its steps differ, because another rank has lost some
  kFrameworkDraws,   // restored, but the framework has drawn random numbers since: cannot be equal bit by bit
  kUndecided,        // a number of an object that saves other state is as at the first step, and no step shows whether
                     // anything depends on it
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
  std::vector<LostState> perhaps;   // those of them that stand at their first value in an object that saves other state
  std::vector<std::string> unjudged;
  bool inside = false;                         // the script saves inside of a step, before its optimizer has stepped
  uint64_t compared = 0;                       // states
  int64_t steps = 0;                           // compared after the resume
  std::optional<RunDifference> before, after;  // first difference of two runs before the save, and after the resume
  std::string noticed;                         // the first op that noticed; ""
  int64_t noticed_step = -1;
};

std::string_view ResumeOutcomeText(ResumeOutcome outcome);

}  // namespace msprobe
