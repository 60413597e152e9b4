#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(draws, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view DrawsProgram() { return MSPROBE_EMBEDDED(draws); }

}  // namespace msprobe
