// The Python program that runs calls again, python/msprobe/_replay.py, and what all such programs share, _channel.py.
#pragma once

#include <string_view>

namespace msprobe {

/// A part of the command, so that the command alone is enough to start it.
std::string_view ReplayProgram();
/// The module _channel, which the others import.
std::string_view ChannelProgram();

}  // namespace msprobe
