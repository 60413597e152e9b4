// What a comparison says of a row, an op or a node.
#pragma once

#include <cstdint>
#include <string_view>

namespace msprobe {

/// In the order of severity; kNone where nothing was compared.
enum class Verdict : uint8_t { kNone, kPass, kWarning, kError };

inline std::string_view VerdictText(Verdict v) {
  return v == Verdict::kError ? "error" : v == Verdict::kWarning ? "warning" : "pass";
}

}  // namespace msprobe
