#include "report/report_page.h"

#include "base/embed.h"
#include "base/message.h"

#ifdef MSPROBE_REPORT_FILE
MSPROBE_EMBED(report, MSPROBE_REPORT_FILE);  // web/dist/report.html
#endif

namespace msprobe {

Status CheckHtmlReport() {
  if (!ReportPage().empty()) return OkStatus();
  return UsageError(
      Msg("--html: this msprobe was built without its pages; build it with Node.js installed (tools/setup.sh) and "
          "-DMSPROBE_WEB=ON, or leave --html out"));
}

std::string_view ReportPage() {
#ifdef MSPROBE_REPORT_FILE
  return MSPROBE_EMBEDDED(report);
#else
  return {};
#endif
}

}  // namespace msprobe
