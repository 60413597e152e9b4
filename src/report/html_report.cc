#include "report/html_report.h"

#include <libdeflate.h>

#include <memory>

#include "base/base64.h"
#include "base/file.h"
#include "json/writer.h"

namespace msprobe {
namespace {

StatusOr<std::string> Gzip(std::string_view bytes) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> packer(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  if (!packer) return InternalError("cannot pack the HTML report: out of memory");
  std::string out(libdeflate_gzip_compress_bound(packer.get(), bytes.size()), '\0');
  out.resize(libdeflate_gzip_compress(packer.get(), bytes.data(), bytes.size(), out.data(), out.size()));
  return out;
}

std::string ReportJson(const CompareReport& report) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("format", 1);
  json.Member("tool", "msprobe " MSPROBE_VERSION);
  json.Member("time", TimestampNow());
  json.RawMember("summary", SummaryJson(report));
  json.ArrayMember("pages", report.pairs, [&](const PairReport& pair) { json.Raw(pair.page); });
  json.EndObject();
  return json.Take();
}

}  // namespace

Status CheckHtmlReport() {
  if (!ReportPage().empty()) return OkStatus();
  return UsageError(
      "--html: this msprobe was built without its pages; build it with Node.js installed (tools/setup.sh) and "
      "-DMSPROBE_WEB=ON, or leave --html out");
}

StatusOr<std::string> FillPage(std::string_view page, std::string_view json) {
  const size_t at = page.find(kDataMark);
  if (at == std::string_view::npos) return InternalError("the page of the HTML report has no place for its data");
  MSP_ASSIGN_OR_RETURN(const std::string packed, Gzip(json));
  std::string out(page.substr(0, at));
  return out.append(Base64(packed)).append(page.substr(at + kDataMark.size()));
}

Status WriteHtmlReport(const std::string& path, CompareReport* report) {
  MSP_ASSIGN_OR_RETURN(const std::string html, FillPage(ReportPage(), ReportJson(*report)));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(html));
  MSP_RETURN_IF_ERROR(file.CommitResult());
  report->html = file.path();
  return OkStatus();
}

}  // namespace msprobe
