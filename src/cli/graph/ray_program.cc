#include "cli/graph/ray_program.h"

// The assembler copies the file into the program as it is.
asm(".section .rodata\n"
    "msprobe_ray_begin:\n"
    ".incbin \"" MSPROBE_PROGRAM_FILE
    "\"\n"
    "msprobe_ray_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" {
__attribute__((visibility("hidden"))) extern const char msprobe_ray_begin[];
__attribute__((visibility("hidden"))) extern const char msprobe_ray_end[];
}

namespace msprobe {

std::string_view RayProgram() { return {msprobe_ray_begin, static_cast<size_t>(msprobe_ray_end - msprobe_ray_begin)}; }

}  // namespace msprobe
