// The Python program that runs calls again, python/msprobe/_replay.py.
#pragma once

#include <string_view>

namespace msprobe {

/// A part of the command, so that the command alone is enough to start it.
std::string_view ReplayProgram();

}  // namespace msprobe
