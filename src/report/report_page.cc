#include "report/html_report.h"

#if MSPROBE_EMBED_REPORT
// MSPROBE_REPORT_FILE is web/dist/report.html; the assembler copies it into the program as it is.
asm(".section .rodata\n"
    ".balign 16\n"
    "msprobe_report_begin:\n"
    ".incbin \"" MSPROBE_REPORT_FILE
    "\"\n"
    "msprobe_report_end:\n"
    ".byte 0\n"
    ".previous\n");
extern "C" {
__attribute__((visibility("hidden"))) extern const char msprobe_report_begin[];
__attribute__((visibility("hidden"))) extern const char msprobe_report_end[];
}
#endif

namespace msprobe {

std::string_view ReportPage() {
#if MSPROBE_EMBED_REPORT
  return {msprobe_report_begin, static_cast<size_t>(msprobe_report_end - msprobe_report_begin)};
#else
  return {};
#endif
}

}  // namespace msprobe
