#include "base/embed.h"
#include "lab/online/online_programs.h"

MSPROBE_EMBED(online_calls, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view OnlineCallsProgram() { return MSPROBE_EMBEDDED(online_calls); }

}  // namespace msprobe
