#include "base/embed.h"
#include "lab/relations/lab_program.h"

MSPROBE_EMBED(changes_module, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view ChangesProgram() { return MSPROBE_EMBEDDED(changes_module); }

}  // namespace msprobe
