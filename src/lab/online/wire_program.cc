#include "base/embed.h"
#include "lab/online/online_programs.h"

MSPROBE_EMBED(online_wire, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view OnlineWireProgram() { return MSPROBE_EMBEDDED(online_wire); }

}  // namespace msprobe
