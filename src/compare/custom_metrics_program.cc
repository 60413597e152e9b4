#include "compare/custom_metrics_program.h"

// The assembler copies the file into the program as it is.
asm(".section .rodata\n"
    "msprobe_metrics_begin:\n"
    ".incbin \"" MSPROBE_PROGRAM_FILE
    "\"\n"
    "msprobe_metrics_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" {
__attribute__((visibility("hidden"))) extern const char msprobe_metrics_begin[];
__attribute__((visibility("hidden"))) extern const char msprobe_metrics_end[];
}

namespace msprobe {

std::string_view CustomMetricsProgram() {
  return {msprobe_metrics_begin, static_cast<size_t>(msprobe_metrics_end - msprobe_metrics_begin)};
}

}  // namespace msprobe
