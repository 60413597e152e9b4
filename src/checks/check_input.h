// What a rule of the checklist sees, and what it answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "checks/effective.h"

namespace msprobe {

enum class CheckVerdict : uint8_t { kSkip, kUnseen, kPass, kAsk, kWarn, kFail };
/// not seen, pass, ask, warn, fail.
std::string_view NameOf(CheckVerdict verdict);

/// What a rule shows instead of the values of its quantity.
struct CheckShown {
  std::string value, origin;
};

/// Both runs; `golden` is null if only one is looked at.
struct CheckInput {
  const EffectiveRun* target;
  const EffectiveRun* golden;
  std::string_view quantity;
  std::optional<CheckShown>* shown = nullptr;  // of the target and of the golden run
};

}  // namespace msprobe
