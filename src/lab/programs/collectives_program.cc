#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(collectives, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view CollectivesProgram() { return MSPROBE_EMBEDDED(collectives); }

}  // namespace msprobe
