// Curves as a report of the page that all tools share.
#include <fmt/format.h>

#include "base/message.h"
#include "base/text.h"
#include "jobs/curves.h"

namespace msprobe {
namespace {

std::string OutcomeOf(const CurvesResult& result) {
  if (result.judgement.verdict == CurveVerdict::kEqual) return "equal";
  if (result.fine()) return "round_off";
  return result.judgement.verdict == CurveVerdict::kNoBand ? "unknown" : "origin";
}

std::string ToneOf(RuleVerdict verdict) {
  switch (verdict) {
    case RuleVerdict::kPass: return "good";
    case RuleVerdict::kUnknown: return "odd";
    case RuleVerdict::kWarn:
    case RuleVerdict::kFail: break;
  }
  return "bad";
}

BothWords WordsOf(RuleVerdict verdict) {
  switch (verdict) {
    case RuleVerdict::kPass: return Both("pass", "通过");
    case RuleVerdict::kWarn: return Both("warning", "警告");
    case RuleVerdict::kFail: return Both("fail", "未通过");
    case RuleVerdict::kUnknown: break;
  }
  return Both("unknown", "未知");
}

ReportCell CellOf(const BothWords& words, std::string tone = "") { return {{words}, std::move(tone), {}}; }
ReportCell Number(std::string text) { return CellOf({text, text}, "number"); }

/// "log of Megatron", "csv".
BothWords FormatWords(const std::string& format) {
  constexpr std::string_view kLog = "log of ";
  if (!format.starts_with(kLog)) return {format, format};
  const std::string of = format.substr(kLog.size());
  return {format, of == "a training" ? "训练日志" : of + " 的日志"};
}

ReportPart RulesPart(const CurveJudgement& judgement) {
  ReportPart part;
  part.title = Both("Rules", "规则");
  ReportTable& table = part.blocks.emplace_back().table.emplace();
  table.columns = {Both("Rule", "规则"), Both("Verdict", "结论"), Both("Found", "发现")};
  for (const CurveRule& rule : judgement.rules) {
    table.rows.push_back({CellOf(Both(KnownText(rule.rule))), CellOf(WordsOf(rule.verdict), ToneOf(rule.verdict)),
                          CellOf(Both(rule.text))});
  }
  return part;
}

ReportPart CurvePart(const CurvesResult& result, const ComparedCurve& c) {
  ReportPart part;
  part.title = Both(KnownText(CurveKindText(c.kind)));
  ReportChart values;
  values.label = part.title;
  for (const RunCurves& run : result.more_a) {
    const CurvePair pair = PairCurves(result.a.of(c.kind), run.of(c.kind));
    values.lines.push_back(ChartLine(run.path, "more", pair.steps, pair.b));
  }
  values.lines.push_back(ChartLine("A", "a", c.pair.steps, c.pair.a));
  values.lines.push_back(ChartLine("B", "b", c.pair.steps, c.pair.b));
  if (result.judgement.step && c.kind == result.curves.front().kind) {
    values.mark = result.judgement.step;
    values.mark_words = Both("they part", "分叉");
  }
  part.blocks.emplace_back().chart = std::move(values);
  if (c.kind == CurveKind::kLearningRate) return part;
  std::vector<double> differences;
  for (size_t i = 0; i < c.pair.size(); ++i) differences.push_back(c.pair.difference(i));
  ReportChart difference;
  difference.label = c.band ? Both("B - A and the golden band", "B - A 与标杆带") : Both("B - A", "B - A");
  difference.lines.push_back(ChartLine("B - A", "b", c.pair.steps, differences));
  if (c.band) difference.band = ChartLine("", "band", c.band->steps, c.band->half_widths);
  part.blocks.emplace_back().text = difference.label;
  part.blocks.emplace_back().chart = std::move(difference);
  return part;
}

ReportPart FiguresPart(const CurvesResult& result) {
  ReportPart part;
  part.title = Both("Differences", "差异");
  ReportTable& table = part.blocks.emplace_back().table.emplace();
  table.columns = {Both("Quantity", "量"),
                   Both("Steps", "step 数"),
                   Both("Mean |B - A|", "|B - A| 均值"),
                   Both("Largest |B - A| (step)", "|B - A| 最大值（step）"),
                   Both("Mean relative", "平均相对误差"),
                   Both("Above / below", "正 / 负"),
                   Both("Drift", "漂移"),
                   Both("Golden band (runs)", "标杆带（次数）")};
  for (const ComparedCurve& c : result.curves) {
    const CurveDifference& d = c.difference;
    ReportCell band;
    if (c.band) {
      const BothWords how = Both(KnownText(BandConstructionText(c.band->construction)));
      band = CellOf({fmt::format("{} ({})", how.en, c.band->runs), fmt::format("{}（{}）", how.zh, c.band->runs)});
    }
    table.rows.push_back(
        {CellOf(Both(KnownText(CurveKindText(c.kind)))), Number(fmt::format("{}", d.count)),
         Number(fmt::format("{:.4g}", d.mean_abs)), Number(fmt::format("{:.4g} ({})", d.max_abs, d.max_step)),
         Number(fmt::format("{:.3g}", d.mean_relative)), Number(fmt::format("{} / {}", d.positive, d.negative)),
         Number(fmt::format("{:.3g}", d.drift)), std::move(band)});
  }
  return part;
}

}  // namespace

ReportDocument CurvesDocument(const CurvesResult& result) {
  ReportDocument out;
  const BothWords headline = Both(KnownText(CurveVerdictText(result.judgement.verdict)));
  out.head = {"curves", OutcomeOf(result), headline.en, headline.zh};
  const auto line = [&](std::string_view side, const RunCurves& run) {
    const BothWords format = FormatWords(run.format);
    const std::string path = OneLine(run.path);
    out.lines.push_back(
        {fmt::format("{}  {} ({})", side, path, format.en), fmt::format("{}  {}（{}）", side, path, format.zh)});
  };
  line("A", result.a);
  line("B", result.b);
  for (const RunCurves& run : result.more_a) line("A", run);
  for (const Message& note : result.notes) out.lines.push_back(Both(OneLined(note)));
  for (const ComparedCurve& c : result.curves) out.parts.push_back(CurvePart(result, c));
  out.parts.push_back(RulesPart(result.judgement));
  out.parts.push_back(FiguresPart(result));
  return out;
}

}  // namespace msprobe
