#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(near, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view NearProgram() { return MSPROBE_EMBEDDED(near); }

}  // namespace msprobe
