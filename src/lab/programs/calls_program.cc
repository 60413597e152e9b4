#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(calls, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view CallsProgram() { return MSPROBE_EMBEDDED(calls); }

}  // namespace msprobe
