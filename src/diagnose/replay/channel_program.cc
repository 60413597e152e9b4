#include "base/embed.h"
#include "diagnose/replay/replay_program.h"

MSPROBE_EMBED(channel, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view ChannelProgram() { return MSPROBE_EMBEDDED(channel); }

}  // namespace msprobe
