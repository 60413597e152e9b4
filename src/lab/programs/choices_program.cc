#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(choices, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view ChoicesProgram() { return MSPROBE_EMBEDDED(choices); }

}  // namespace msprobe
