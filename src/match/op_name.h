// The parts of an op's name that matching cares about.
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe {

enum class OpDirection : uint8_t { kNone, kForward, kBackward, kParameterGrad };

/// "Functional.linear.3.backward" or "Module.fc.Linear.backward.3" -> base "Functional.linear" / "Module.fc.Linear",
/// backward, call number 3. `number` is empty when the name carries none. All parts point into the name.
struct NameParts {
  std::string_view full;
  std::string_view base;  // the whole name when the direction is kNone
  std::string_view number;
  OpDirection direction = OpDirection::kNone;
  bool number_last = false;  // modules: "backward.3"; APIs: "3.backward"
};

NameParts ParseOpName(std::string_view name);

}  // namespace msprobe
