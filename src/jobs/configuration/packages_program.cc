#include "jobs/configuration/packages_program.h"

#include "base/embed.h"

MSPROBE_EMBED(packages, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view PackagesProgram() { return MSPROBE_EMBEDDED(packages); }

}  // namespace msprobe
