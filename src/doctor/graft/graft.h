// Grafting: B runs with the inputs that A gave its modules. What differs then is the module's own; what agrees differed
// only in its inputs.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "diagnose/story/story.h"
#include "doctor/files/run_files.h"

namespace msprobe {

/// What B recorded with inputs of A, compared module by module.
struct GraftEvidence {
  enum class Outcome : uint8_t {
    kNone,     // nothing was grafted
    kSame,     // with A's inputs B's modules give what A's give, but for rounding
    kModule,   // one of them does not: the difference is its own
    kUnknown,  // inputs could not be loaded, or no op of a module stands out
  };
  Outcome outcome = Outcome::kNone;
  int step = -1;
  std::vector<std::string> modules;  // of B, that got inputs of A
  std::string module;                // of kModule: "layers.1.mlp"
  Story story;                       // of the comparison of these modules alone
  Message why;                       // of kUnknown: what is in the way, as a message of a command
};

GraftEvidence CompareGrafts(const RunFiles& a, const RunFiles& b, const std::string& output);

/// A run of B with inputs of A, prepared: they lie in the output with a configuration for `msprobe run`.
struct PreparedGraft {
  std::string config;                // path
  std::vector<std::string> modules;  // of B, that will get them
};

/// `module`: of B or of A, by its path or the name of a call; "": all that can be held against each other alone.
/// kBadInput with what is missing: both need tensors of the step.
StatusOr<PreparedGraft> PrepareGraft(const RunFiles& a, const RunFiles& b, int step, const std::string& module,
                                     const std::string& output);

/// The first step that both recorded; nothing without one.
std::optional<int> FirstCommonStep(const RunFiles& a, const RunFiles& b);

}  // namespace msprobe
