#include "report/fill_page.h"

#include <libdeflate.h>

#include <memory>

#include "base/base64.h"
#include "base/file.h"
#include "base/message.h"
#include "report/report_page.h"

namespace msprobe {
namespace {

StatusOr<std::string> Gzip(std::string_view bytes) {
  const std::unique_ptr<libdeflate_compressor, decltype(&libdeflate_free_compressor)> packer(
      libdeflate_alloc_compressor(6), libdeflate_free_compressor);
  if (!packer) return InternalError(Msg("cannot pack the HTML report: out of memory"));
  std::string out(libdeflate_gzip_compress_bound(packer.get(), bytes.size()), '\0');
  out.resize(libdeflate_gzip_compress(packer.get(), bytes.data(), bytes.size(), out.data(), out.size()));
  return out;
}

}  // namespace

StatusOr<std::string> FillPage(std::string_view page, std::string_view json) {
  const size_t at = page.find(kDataMark);
  if (at == std::string_view::npos) return InternalError(Msg("the page of the HTML report has no place for its data"));
  MSP_ASSIGN_OR_RETURN(const std::string packed, Gzip(json));
  std::string out(page.substr(0, at));
  return out.append(Base64(packed)).append(page.substr(at + kDataMark.size()));
}

StatusOr<std::string> FilledReportPage(const std::function<void(JsonWriter*)>& members) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("format", 1);
  json.Member("tool", "msprobe " MSPROBE_VERSION);
  json.Member("time", TimestampNow());
  members(&json);
  json.EndObject();
  return FillPage(ReportPage(), json.Take());
}

}  // namespace msprobe
