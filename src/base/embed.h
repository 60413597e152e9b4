// Files of the source tree within the program: the assembler copies them as they are.
#pragma once

#include <cstddef>
#include <string_view>

/// At global scope: `file` (a string literal) goes into the program; MSPROBE_EMBEDDED(symbol) is its text.
#define MSPROBE_EMBED(symbol, file)                                                       \
  asm(".section .rodata\n"                                                                \
      ".balign 16\n"                                                                      \
      "msprobe_" #symbol                                                                  \
      "_begin:\n"                                                                         \
      ".incbin \"" file                                                                   \
      "\"\n"                                                                              \
      "msprobe_" #symbol                                                                  \
      "_end:\n"                                                                           \
      ".byte 0\n"                                                                         \
      ".previous\n");                                                                     \
  extern "C" __attribute__((visibility("hidden"))) const char msprobe_##symbol##_begin[]; \
  extern "C" __attribute__((visibility("hidden"))) const char msprobe_##symbol##_end[]

#define MSPROBE_EMBEDDED(symbol)             \
  std::string_view(msprobe_##symbol##_begin, \
                   static_cast<std::size_t>(msprobe_##symbol##_end - msprobe_##symbol##_begin))
