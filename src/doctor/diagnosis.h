// The stages' answers as one: where two runs part, why, and which run would show more.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/language.h"
#include "doctor/evidence.h"
#include "doctor/stage.h"
#include "judgement/judgement.h"

namespace msprobe {

struct Diagnosis {
  enum class Outcome : uint8_t {
    kAgree,      ///< what was seen agrees bit for bit, or as printed
    kRounding,   ///< differences that rounding or the reference's own error explains
    kUndecided,  ///< nothing that was given decides it
    kParted,     ///< they differ at a stage
  };
  Outcome outcome = Outcome::kUndecided;
  bool bug = false;              // a cause is named that is more than rounding
  std::optional<StageId> stage;  // where they part
  int step = -1;                 // from 0
  std::string cause;             // for programs; "" if it is not known
  BothWords cause_text, fix;
  bool exact = false;           // the cause is named, not only the stage
  std::vector<BothWords> also;  // what differs, too, and cannot be the cause
  std::optional<NextRun> next;
  std::vector<StageResult> results;  // of DoctorStages(), in order
};
/// "agree", "rounding", "undecided", "parted".
std::string_view NameOf(Diagnosis::Outcome outcome);

/// Of each stage. What a diagnosis explains by rounding is no more than rounding here, too.
std::vector<Judgement> JudgementsOf(const Diagnosis& diagnosis, Language language);

Diagnosis Diagnose(const DoctorEvidence& evidence);

}  // namespace msprobe
