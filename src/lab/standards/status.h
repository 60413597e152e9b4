// Whether an output of an op passes mindstudio-probe's accuracy check, with the row of its details file.
#pragma once

#include <string>
#include <string_view>

#include "lab/standards/measures.h"

namespace msprobe {

enum class LabStatus : uint8_t { kPass, kWarning, kError, kSkip, kNone };
/// "pass", "warning", "error", "SKIP" and " ".
std::string_view LabStatusText(LabStatus s);
/// The worst of some: an error, a warning, else a pass.
LabStatus WorseOf(LabStatus a, LabStatus b);

struct CheckedOutput {
  LabStatus status = LabStatus::kNone;
  FigureRow row;
  std::string message;
};

/// Two floating results with the same number of elements, at least one. `api` chooses the standard.
CheckedOutput CheckFloats(std::string_view api, const ResultPair& pair, bool float8_input, StandardRelease release);

/// Results that are equal or not: integers and bools; `differ` of `of` elements do.
CheckedOutput CheckExact(uint64_t differ, uint64_t of);

/// Quantised results may be off by one.
CheckedOutput CheckQuantised(double largest);
bool IsQuantised(std::string_view api);

}  // namespace msprobe
