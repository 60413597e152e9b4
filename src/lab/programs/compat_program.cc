#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(compat, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view CompatProgram() { return MSPROBE_EMBEDDED(compat); }

}  // namespace msprobe
