#include "lab/relations/lab_program.h"

#include "base/embed.h"

MSPROBE_EMBED(lab_module, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view LabProgram() { return MSPROBE_EMBEDDED(lab_module); }

}  // namespace msprobe
