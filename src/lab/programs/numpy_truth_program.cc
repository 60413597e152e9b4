#include "base/embed.h"
#include "lab/programs/check_programs.h"

MSPROBE_EMBED(numpy_truth, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view NumpyTruthProgram() { return MSPROBE_EMBEDDED(numpy_truth); }

}  // namespace msprobe
