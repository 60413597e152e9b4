// Curves out of what a training prints.
#pragma once

#include <string>
#include <string_view>

#include "curves/curve.h"

namespace msprobe {

inline constexpr size_t kMaxLogLine = 64 << 10;  // bytes of a line that are looked at

/// The format whose words give the most losses; a line without a step counts on from the line before. kBadInput for a
/// log without a loss.
StatusOr<RunCurves> ReadLogCurves(std::string_view log, const std::string& path, const CurveNames& names);

}  // namespace msprobe
