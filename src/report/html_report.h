// One self-contained HTML file: the page of web/report with the comparison inside.
#pragma once

#include <string>

#include "report/summary.h"

namespace msprobe {

/// Writes the file and notes its path in `report`.
Status WriteHtmlReport(const std::string& path, CompareReport* report);

}  // namespace msprobe
