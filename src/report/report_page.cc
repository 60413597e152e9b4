#include "base/embed.h"
#include "report/html_report.h"

#if MSPROBE_EMBED_REPORT
MSPROBE_EMBED(report, MSPROBE_REPORT_FILE);  // web/dist/report.html
#endif

namespace msprobe {

std::string_view ReportPage() {
#if MSPROBE_EMBED_REPORT
  return MSPROBE_EMBEDDED(report);
#else
  return {};
#endif
}

}  // namespace msprobe
