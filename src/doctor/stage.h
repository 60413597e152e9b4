// A stage of the way from the same preparation to the same curve: what it says of two runs.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "base/words/both_words.h"

namespace msprobe {

struct DoctorEvidence;

enum class StageId : uint8_t {
  kConfig,
  kData,
  kWeights,
  kStep1Loss,
  kLocalNorm,
  kOptimizer,
  kStep2,
  kFrozen,  // a long run with a learning rate of 0
  kBand,
  kTraining,  // a long run that learns
};

enum class StageVerdict : uint8_t {
  kNotSeen,  ///< nothing that was given shows it
  kPass,     ///< both do the same, as far as it was seen
  kUnsure,   ///< they differ by what may or may not be rounding
  kDiffers,
};
/// "not_seen", "pass", "cannot_say", "differs".
std::string_view NameOf(StageVerdict verdict);

/// A run that would show more, as commands to paste.
struct NextRun {
  BothWords why;
  std::vector<std::string> commands;
};

struct StageResult {
  StageVerdict verdict = StageVerdict::kNotSeen;
  std::vector<BothWords> evidence;  // a sentence each, of what was seen
  int step = -1;                    // from 0, where it differs
  std::string cause;                // for programs: "rule structure.norm_eps", "op Functional.linear.3.forward"
  BothWords cause_text;             // for people
  BothWords fix;
  bool exact = false;            // the cause is named, not only the stage
  bool own = false;              // what an earlier stage differs in does not make it
  bool firm = false;             // kUnsure for a reason that steps which agree do not explain
  std::optional<NextRun> next;   // the cheapest that would decide this stage
  std::optional<NextRun> offer;  // what shows this stage alone, where another run shows more at once
};

struct DoctorStage {
  StageId id;
  std::string_view name;  // "step1_loss", as JSON has it
  std::string_view en, zh;
  StageResult (*judge)(const DoctorEvidence& evidence);
};

/// In their order.
std::span<const DoctorStage> DoctorStages();

}  // namespace msprobe
