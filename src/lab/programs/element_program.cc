#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(element, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view ElementProgram() { return MSPROBE_EMBEDDED(element); }

}  // namespace msprobe
