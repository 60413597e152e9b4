#include "diagnose/replay/replay_program.h"

#include "base/embed.h"

MSPROBE_EMBED(replay, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view ReplayProgram() { return MSPROBE_EMBEDDED(replay); }

}  // namespace msprobe
