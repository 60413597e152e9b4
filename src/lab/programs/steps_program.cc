#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(steps, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view StepsProgram() { return MSPROBE_EMBEDDED(steps); }

}  // namespace msprobe
