// The built page of web/report.
#pragma once

#include <string_view>

#include "base/status.h"

namespace msprobe {

/// kUsage when this msprobe was built without the page.
Status CheckHtmlReport();

/// The page, which has kDataMark where its data goes; "" without it (MSPROBE_WEB=OFF).
std::string_view ReportPage();

}  // namespace msprobe
