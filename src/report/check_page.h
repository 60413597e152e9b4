// What acc_check found, as a page: its tables, the worst first.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "judgement/report_head.h"

namespace msprobe {

/// "accuracy_checking_report_{time}.html" for the table accuracy_checking_float64_{time}.csv.
std::string CheckPageName(std::string_view table);

/// What the page shows, as JSON: of the table of float64 all functions and the 10,000 worst results, and what does not
/// pass in the table of results, where that lies beside it. `graphs`: files of the server that hands the page out, into
/// which it links.
StatusOr<std::string> CheckPageData(const std::string& table, const std::vector<std::string>& graphs, ReportHead* head);
/// The page of the HTML report with that.
StatusOr<std::string> CheckPage(const std::string& table, const std::vector<std::string>& graphs = {});

/// CheckPage() as a file. False, and nothing is written, if this msprobe was built without the page.
StatusOr<bool> WriteCheckPage(const std::string& table, const std::string& path);

}  // namespace msprobe
