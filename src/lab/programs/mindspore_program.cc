#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(mindspore, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view MindSporeProgram() { return MSPROBE_EMBEDDED(mindspore); }

}  // namespace msprobe
