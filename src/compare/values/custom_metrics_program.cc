#include "compare/values/custom_metrics_program.h"

#include "base/embed.h"

MSPROBE_EMBED(metrics, MSPROBE_PROGRAM_FILE);

namespace msprobe {

std::string_view CustomMetricsProgram() { return MSPROBE_EMBEDDED(metrics); }

}  // namespace msprobe
