#include "base/embed.h"
#include "report/html_report.h"

#ifdef MSPROBE_REPORT_FILE
MSPROBE_EMBED(report, MSPROBE_REPORT_FILE);  // web/dist/report.html
#endif

namespace msprobe {

std::string_view ReportPage() {
#ifdef MSPROBE_REPORT_FILE
  return MSPROBE_EMBEDDED(report);
#else
  return {};
#endif
}

}  // namespace msprobe
