// The page of `msprobe rollout`: the stages, and how far both sides are apart by request and token.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/words/translate.h"
#include "rollout/locator/report.h"

namespace msprobe {
namespace {

constexpr std::string_view kStyle =
    ":root{color-scheme:light dark;--line:#8886;--bad:#b3261e;--ok:#1b6e3a;--odd:#7a5900}"
    "@media(prefers-color-scheme:dark){:root{--bad:#ff8a80;--ok:#7ddc9a;--odd:#ffd166}}"
    "body{font:16px/1.55 system-ui,sans-serif;margin:0 auto;max-width:64rem;padding:1.5rem}h1{font-size:1.4rem}"
    "h2{font-size:1.1rem;margin-top:2rem}table{border-collapse:collapse;width:100%}td,th{border-top:1px solid "
    "var(--line);"
    "padding:.4rem;text-align:left;vertical-align:top}.cause{color:var(--bad)}.agrees,.round_off{color:var(--ok)}"
    ".unsure,.legitimate{color:var(--odd)}svg{width:100%;height:auto}rect{fill:#d9480f}text{fill:currentColor;font-"
    "size:9px}";
constexpr size_t kMostRequests = 200, kMostColumns = 512;

/// Largest |difference| of a stretch of tokens.
struct GapCell {
  double apart = 0;
  int64_t position = 0;
};

std::string GapPicture(const RolloutReport& report, Language language) {
  std::map<std::string, size_t> rows;
  std::vector<std::string> names;
  int64_t first = INT64_MAX, last = 0;
  double most = 0;
  for (const TokenGap& gap : report.gaps) {
    if (rows.size() == kMostRequests && !rows.contains(gap.request)) continue;
    if (rows.emplace(gap.request, rows.size()).second) names.push_back(gap.request);
    first = std::min(first, gap.position);
    last = std::max(last, gap.position);
    most = std::max(most, std::fabs(gap.train - gap.rollout));
  }
  if (rows.empty() || most == 0) return {};
  const size_t columns = std::min(kMostColumns, static_cast<size_t>(last - first + 1));
  std::vector<std::vector<GapCell>> cells(rows.size(), std::vector<GapCell>(columns));
  for (const TokenGap& gap : report.gaps) {
    const auto row = rows.find(gap.request);
    if (row == rows.end()) continue;
    const auto column = static_cast<size_t>(static_cast<double>(gap.position - first) * static_cast<double>(columns) /
                                            static_cast<double>(last - first + 1));
    GapCell& cell = cells[row->second][std::min(column, columns - 1)];
    const double apart = std::fabs(gap.train - gap.rollout);
    if (apart >= cell.apart) cell = {apart, gap.position};
  }
  constexpr size_t kName = 70, kHeight = 12;
  const double width = 930.0 / static_cast<double>(columns);
  std::string out =
      "<h2>" +
      PageText(InLanguage(Msg("|difference| of the log-probabilities by request and token, at most {:.3g} nats", most),
                          language)) +
      "</h2>\n";
  out += fmt::format("<a href=\"#stages\"><svg viewBox=\"0 0 1000 {}\" role=\"img\">\n", rows.size() * kHeight);
  for (size_t r = 0; r < cells.size(); ++r) {
    out +=
        fmt::format("<text x=\"0\" y=\"{}\">{}</text>\n", r * kHeight + 9, PageText(OneLine(names[r].substr(0, 12))));
    for (size_t c = 0; c < columns; ++c) {
      if (cells[r][c].apart == 0) continue;
      out += fmt::format(
          "<rect x=\"{:.1f}\" y=\"{}\" width=\"{:.1f}\" height=\"10\" "
          "fill-opacity=\"{:.2f}\"><title>{}</title></rect>\n",
          static_cast<double>(kName) + static_cast<double>(c) * width, r * kHeight, width,
          std::max(0.05, cells[r][c].apart / most),
          PageText(InLanguage(
              Msg("request {}, token {}: {:.3g}", OneLine(names[r]), cells[r][c].position, cells[r][c].apart),
              language)));
    }
  }
  return out + "</svg></a>\n";
}

}  // namespace

std::string RolloutPage(const RolloutReport& report, Language language) {
  const auto words = [&](const Message& message) { return PageText(InLanguage(message, language)); };
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"{}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>msprobe "
      "rollout</title>\n<style>{}</style></head><body><main>\n<h1>{}</h1>\n",
      language == Language::kChinese ? "zh" : "en", kStyle, words(RolloutHeadline(report)));
  out += GapPicture(report, language);
  out += fmt::format("<h2 id=\"stages\">{}</h2>\n<table><tr><th>{}</th><th>{}</th><th>{}</th><th>{}</th></tr>\n",
                     words(Msg("Stages")), words(Msg("stage")), words(Msg("seen")), words(Msg("verdict")),
                     words(Msg("share of the gap")));
  for (const RolloutStageResult& result : report.results) {
    out += fmt::format("<tr id=\"{}\"><td>{}</td><td>{}</td><td><strong class=\"{}\">{}</strong> {}",
                       NameOf(result.stage), words(WordsOf(result.stage)), words(result.seen), NameOf(result.verdict),
                       words(WordsOf(result.verdict)), words(result.sentence));
    out += "<ul>";
    for (const std::vector<Message>* lines : {&result.evidence, &result.also}) {
      for (const Message& line : *lines) out += "<li>" + words(line) + "</li>";
    }
    for (const Message& line : result.not_seen) out += "<li>" + words(Msg("not seen: {}", line)) + "</li>";
    if (!result.next_run.empty()) out += "<li>" + words(Msg("next run: {}", result.next_run)) + "</li>";
    out += "</ul></td><td>" + (result.share ? fmt::format("{:.0f} %", 100 * *result.share) : "") + "</td></tr>\n";
  }
  return out + "</table></main></body></html>\n";
}

Status WriteRolloutFiles(const std::string& output, RolloutReport* report) {
  const std::string json = JoinPath(output, "msprobe_rollout.json"), page = JoinPath(output, "msprobe_rollout.html");
  report->files = {json, page};
  for (const auto& [path, text] :
       {std::pair{json, RolloutJson(*report)}, {page, RolloutPage(*report, LocaleLanguage())}}) {
    MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
    MSP_RETURN_IF_ERROR(file.Write(text));
    MSP_RETURN_IF_ERROR(file.Commit());
  }
  return OkStatus();
}

}  // namespace msprobe
