#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(recorded, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view RecordedProgram() { return MSPROBE_EMBEDDED(recorded); }

}  // namespace msprobe
