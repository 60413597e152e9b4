// One self-contained HTML file: the page of web/report with the comparison inside.
#pragma once

#include <string>

#include "report/summary.h"

namespace msprobe {

/// kUsage when this msprobe was built without the page.
Status CheckHtmlReport();

/// Writes the file and notes its path in `report`.
Status WriteHtmlReport(const std::string& path, CompareReport* report);

/// `page` with `json`, packed, where it has kDataMark. Nothing of `json` can leave its place: it stands there as
/// base64.
inline constexpr std::string_view kDataMark = "MSPROBE-REPORT-DATA";
StatusOr<std::string> FillPage(std::string_view page, std::string_view json);

/// The built page; "" without (MSPROBE_WEB=OFF).
std::string_view ReportPage();

}  // namespace msprobe
