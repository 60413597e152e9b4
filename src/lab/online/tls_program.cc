#include "base/embed.h"
#include "lab/online/online_programs.h"

MSPROBE_EMBED(online_tls, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view OnlineTlsProgram() { return MSPROBE_EMBEDDED(online_tls); }

}  // namespace msprobe
