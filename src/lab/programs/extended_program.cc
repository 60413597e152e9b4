#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(extended, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view ExtendedProgram() { return MSPROBE_EMBEDDED(extended); }

}  // namespace msprobe
