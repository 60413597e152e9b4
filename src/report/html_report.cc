#include "report/html_report.h"

#include "base/file.h"
#include "report/fill_page.h"

namespace msprobe {

Status WriteHtmlReport(const std::string& path, CompareReport* report) {
  const std::string en = StoryHeadline(report->story, Language::kEnglish);
  const std::string zh = StoryHeadline(report->story, Language::kChinese);
  const ReportHead head{"compare", std::string(OutcomeName(report->story)), en, zh};
  MSP_ASSIGN_OR_RETURN(const std::string html, FilledReportPage(head, [&](JsonWriter* json) {
                         json->RawMember("summary", SummaryJson(*report));
                         json->ArrayMember("pages", report->pairs,
                                           [&](const PairReport& pair) { json->Raw(pair.page); });
                       }));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(html));
  MSP_RETURN_IF_ERROR(file.CommitResult());
  report->html = file.path();
  return OkStatus();
}

}  // namespace msprobe
