#include "judgement/report_head.h"

#include <algorithm>
#include <array>
#include <fstream>

#include "base/base64.h"
#include "base/text.h"
#include "json/parser.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr std::string_view kCharset = "<meta charset=\"utf-8\"";
constexpr std::string_view kBegin = "<meta name=\"msprobe-report\" content=\"", kEnd = "\">";
constexpr size_t kFirstBytes = 16 << 10;
constexpr size_t kMostHeadline = 1200;  // bytes of a headline in a list
constexpr std::array<std::string_view, 4> kOutcomes{"origin", "equal", "round_off", "unknown"};

/// What is cut is cut between two characters.
std::string_view Bounded(std::string_view text) {
  if (text.size() <= kMostHeadline) return text;
  size_t end = kMostHeadline;
  while (end > 0 && (static_cast<unsigned char>(text[end]) & 0xC0) == 0x80) --end;
  return text.substr(0, end);
}

}  // namespace

std::string WithReportHead(std::string_view page, const ReportHead& head) {
  const size_t charset = page.find(kCharset);
  const size_t at = charset == std::string_view::npos ? charset : page.find('>', charset);
  if (at == std::string_view::npos) return std::string(page);
  JsonWriter json(kJsonPage);
  json.Object([&] {
    json.Member("kind", head.kind);
    json.Member("outcome", head.outcome);
    json.Member("en", ToUtf8(Bounded(head.en)));
    json.Member("zh", ToUtf8(Bounded(head.zh)));
  });
  std::string out(page.substr(0, at + 1));
  out.append(kBegin).append(Base64(json.Take())).append(kEnd);
  return out.append(page.substr(at + 1));
}

std::optional<ReportHead> ReadReportHead(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string first(kFirstBytes, '\0');
  file.read(first.data(), static_cast<std::streamsize>(first.size()));
  first.resize(static_cast<size_t>(std::max<std::streamsize>(file.gcount(), 0)));
  const size_t begin = first.find(kBegin);
  if (begin == std::string::npos) return std::nullopt;
  const size_t from = begin + kBegin.size(), to = first.find(kEnd, from);
  std::string text;
  JsonDoc doc;
  if (to == std::string::npos || !FromBase64(std::string_view(first).substr(from, to - from), &text) ||
      !ParseJson(text, path, &doc).ok()) {
    return std::nullopt;
  }
  ReportHead head{std::string(doc["kind"].Text()), std::string(doc["outcome"].Text()), std::string(doc["en"].Text()),
                  std::string(doc["zh"].Text())};
  if (std::find(kOutcomes.begin(), kOutcomes.end(), head.outcome) == kOutcomes.end()) head.outcome = "unknown";
  return head;
}

}  // namespace msprobe
