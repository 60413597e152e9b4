#include "report/document.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "report/fill_page.h"
#include "report/report_page.h"

namespace msprobe {
namespace {

constexpr size_t kMostPoints = 2000;       // of a line: more cannot be seen
constexpr size_t kMostTableRows = 10'000;  // what a browser draws at once
constexpr size_t kMostJudgements = 500;    // of a table of judgements; the counts have all

void WriteWords(JsonWriter* json, const BothWords& words) {
  json->Object([&] {
    json->Member("en", ToUtf8(words.en));
    json->Member("zh", ToUtf8(words.zh));
  });
}

void WriteList(JsonWriter* json, std::string_view key, const std::vector<BothWords>& list) {
  json->ArrayMember(key, list, [&](const BothWords& words) { WriteWords(json, words); });
}

void WriteTexts(JsonWriter* json, std::string_view key, const std::vector<std::string>& list) {
  json->ArrayMember(key, list, [&](const std::string& text) { json->Value(ToUtf8(text)); });
}

void WriteTable(JsonWriter* json, const ReportTable& table) {
  WriteList(json, "columns", table.columns);
  json->Member("total", table.rows.size());
  json->Key("rows"), json->BeginArray();
  for (size_t i = 0; i < std::min(table.rows.size(), kMostTableRows); ++i) {
    json->Array(table.rows[i], [&](const ReportCell& cell) {
      json->Object([&] {
        WriteList(json, "lines", cell.lines);
        json->Member("tone", cell.tone);
        if (!cell.commands.empty()) WriteTexts(json, "commands", cell.commands);
      });
    });
  }
  json->EndArray();
}

void WriteLine(JsonWriter* json, const ReportChartLine& line) {
  json->Object([&] {
    json->Member("name", ToUtf8(line.name));
    json->Member("kind", line.kind);
    json->Member("steps", line.steps);
    json->Key("values"), json->BeginArray();
    for (const double v : line.values) std::isfinite(v) ? json->Rounded(v, 9) : json->Null();
    json->EndArray();
  });
}

void WriteChart(JsonWriter* json, const ReportChart& chart) {
  json->Key("label"), WriteWords(json, chart.label);
  json->ArrayMember("lines", chart.lines, [&](const ReportChartLine& line) { WriteLine(json, line); });
  if (!chart.band.steps.empty()) json->Key("band"), WriteLine(json, chart.band);
  if (!chart.mark) return;
  json->Member("mark", *chart.mark);
  json->Key("mark_words"), WriteWords(json, chart.mark_words);
}

void WriteBlock(JsonWriter* json, const ReportBlock& block) {
  json->Object([&] {
    if (!block.text.empty()) json->Key("text"), WriteWords(json, block.text);
    if (!block.commands.empty()) WriteTexts(json, "commands", block.commands);
    if (block.table) json->ObjectMember("table", [&] { WriteTable(json, *block.table); });
    if (block.chart) json->ObjectMember("chart", [&] { WriteChart(json, *block.chart); });
  });
}

std::string ToneOf(JudgementKind kind) {
  const JudgementWeight weight = WeightOf(kind);
  if (weight <= JudgementWeight::kExplained) return "good";
  return weight >= JudgementWeight::kSuspect ? "bad" : "odd";
}

}  // namespace

std::string OutcomeOf(JudgementKind kind) {
  switch (WeightOf(kind)) {
    case JudgementWeight::kSame: return "equal";
    case JudgementWeight::kExplained: return "round_off";
    case JudgementWeight::kSuspect:
    case JudgementWeight::kFault: return "origin";
    default: return "unknown";
  }
}

ReportDocument DocumentOf(const Conclusion& conclusion, std::string kind) {
  ReportDocument out;
  const BothWords headline = Both(OneLined(HeadlineOf(conclusion)));
  out.head = {std::move(kind), OutcomeOf(conclusion.kind), headline.en, headline.zh};
  std::vector<const Judgement*> shown;
  for (const Judgement& one : conclusion.judgements) {
    if (KindOf(one) != JudgementKind::kBitEqual) shown.push_back(&one);
  }
  std::stable_sort(shown.begin(), shown.end(),
                   [](const Judgement* a, const Judgement* b) { return WeightOf(KindOf(*a)) > WeightOf(KindOf(*b)); });
  if (const size_t equal = conclusion.judgements.size() - shown.size(); equal > 0) {
    out.lines.push_back(Both(Msg("{} bit-equal", equal)));
  }
  if (shown.empty()) return out;
  ReportTable table;
  table.columns = {Both("What", "对象"), Both("Verdict", "结论"), Both("Found", "依据")};
  for (size_t i = 0; i < std::min(shown.size(), kMostJudgements); ++i) {
    const Judgement& one = *shown[i];
    ReportCell found;
    for (const Message& line : one.evidence) found.lines.push_back(Both(OneLined(line)));
    for (const Message& line : one.not_seen) found.lines.push_back(Both(Msg("not seen: {}", OneLined(line))));
    const BothWords about = Both(OneLined(one.about));
    table.rows.push_back({{{about}, "code", {}}, {{Both(WordsOf(KindOf(one)))}, ToneOf(KindOf(one)), {}}, found});
  }
  ReportPart& part = out.parts.emplace_back();
  part.title = Both("What was judged", "各项结论");
  part.blocks.emplace_back().table = std::move(table);
  return out;
}

ReportChartLine ChartLine(std::string name, std::string kind, const std::vector<int64_t>& steps,
                          const std::vector<double>& values) {
  ReportChartLine out{std::move(name), std::move(kind), {}, {}};
  const size_t count = std::min(steps.size(), values.size());
  const size_t stretch = std::max<size_t>(1, 2 * count / kMostPoints);
  const auto less = [&](size_t a, size_t b) {  // what is not finite is drawn as a gap, and kept
    return std::isfinite(values[a]) && (!std::isfinite(values[b]) || values[a] < values[b]);
  };
  for (size_t begin = 0; begin < count; begin += stretch) {
    size_t low = begin, high = begin;
    for (size_t i = begin; i < std::min(count, begin + stretch); ++i) {
      if (less(i, low)) low = i;
      if (less(high, i)) high = i;
    }
    for (const size_t i : {std::min(low, high), std::max(low, high)}) {
      if (!out.steps.empty() && out.steps.back() == steps[i]) continue;
      out.steps.push_back(steps[i]);
      out.values.push_back(values[i]);
    }
  }
  return out;
}

StatusOr<bool> WriteDocument(const ReportDocument& document, const std::string& path) {
  if (ReportPage().empty()) return false;
  MSP_ASSIGN_OR_RETURN(const std::string html, FilledReportPage(document.head, [&](JsonWriter* json) {
                         json->ObjectMember("document", [&] {
                           json->Member("kind", document.head.kind);
                           json->Member("outcome", document.head.outcome);
                           json->Key("headline"), WriteWords(json, {document.head.en, document.head.zh});
                           WriteList(json, "lines", document.lines);
                           json->ArrayMember("parts", document.parts, [&](const ReportPart& part) {
                             json->Object([&] {
                               json->Key("title"), WriteWords(json, part.title);
                               json->ArrayMember("blocks", part.blocks,
                                                 [&](const ReportBlock& block) { WriteBlock(json, block); });
                             });
                           });
                         });
                       }));
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(html));
  MSP_RETURN_IF_ERROR(file.Commit());
  return true;
}

}  // namespace msprobe
