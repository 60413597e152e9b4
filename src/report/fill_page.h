// How data gets into a page.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "base/status.h"
#include "json/writer.h"
#include "judgement/report_head.h"

namespace msprobe {

/// `page` with `json`, packed, where it has kDataMark. Nothing of `json` can leave its place: it stands there as
/// base64.
inline constexpr std::string_view kDataMark = "MSPROBE-REPORT-DATA";
StatusOr<std::string> FillPage(std::string_view page, std::string_view json);

/// The page of reports with one object: what all reports say of themselves, and what `members` writes.
StatusOr<std::string> FilledReportPage(const ReportHead& head, const std::function<void(JsonWriter*)>& members);

/// A report of this or another msprobe in the page of this one: its data, and none of its scripts. kBadInput for what
/// is no such report.
StatusOr<std::string> ReportAgain(const std::string& path);

}  // namespace msprobe
