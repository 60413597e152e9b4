// The Python program that runs the user's metrics, python/msprobe/_custom_metrics.py.
#pragma once

#include <string_view>

namespace msprobe {

/// A part of the command, so that the command alone is enough to start it.
std::string_view CustomMetricsProgram();

}  // namespace msprobe
