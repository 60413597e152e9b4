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

StatusOr<std::string> FilledReportPage(const ReportHead& head, const std::function<void(JsonWriter*)>& members) {
  JsonWriter json(kJsonPage);
  json.BeginObject();
  json.Member("format", 1);
  json.Member("tool", "msprobe " MSPROBE_VERSION);
  json.Member("time", TimestampNow());
  members(&json);
  json.EndObject();
  return FillPage(WithReportHead(ReportPage(), head), json.Take());
}

StatusOr<std::string> ReportAgain(const std::string& path) {
  constexpr std::string_view kData = "id=\"data\">", kEnd = "</script>";
  constexpr std::string_view kLetters =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/=";  // nothing leads out of where they stand
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  const std::string_view text = file.text();
  const size_t at = text.find(kData), from = at == std::string_view::npos ? at : at + kData.size();
  const size_t to = from == std::string_view::npos ? from : text.find(kEnd, from);
  const std::string_view packed = to == std::string_view::npos ? "" : text.substr(from, to - from);
  if (packed.empty() || packed.find_first_not_of(kLetters) != std::string_view::npos) {
    return BadInput(Msg("{} is no report of msprobe: choose from the list of files", BaseName(path)));
  }
  const std::string_view page = ReportPage();
  const size_t mark = page.find(kDataMark);
  if (mark == std::string_view::npos)
    return InternalError(Msg("the page of the HTML report has no place for its data"));
  std::string out(page.substr(0, mark));
  return out.append(packed).append(page.substr(mark + kDataMark.size()));
}

}  // namespace msprobe
