#include "diagnose/replay_program.h"

// The assembler copies the file into the program as it is.
asm(".section .rodata\n"
    "msprobe_replay_begin:\n"
    ".incbin \"" MSPROBE_PROGRAM_FILE
    "\"\n"
    "msprobe_replay_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" {
__attribute__((visibility("hidden"))) extern const char msprobe_replay_begin[];
__attribute__((visibility("hidden"))) extern const char msprobe_replay_end[];
}

namespace msprobe {

std::string_view ReplayProgram() {
  return {msprobe_replay_begin, static_cast<size_t>(msprobe_replay_end - msprobe_replay_begin)};
}

}  // namespace msprobe
