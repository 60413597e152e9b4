// Curves for a terminal.
#include <fmt/format.h>

#include <algorithm>

#include "base/message.h"
#include "base/text.h"
#include "curves/plot.h"
#include "jobs/curves.h"

namespace msprobe {
namespace {

constexpr size_t kWidth = 72, kHeight = 12;

PlotLine LineOf(const std::vector<int64_t>& steps, const std::vector<double>& values, char mark, double sign = 1) {
  PlotLine out;
  out.mark = mark;
  for (size_t i = 0; i < steps.size(); ++i) {
    out.x.push_back(static_cast<double>(steps[i]));
    out.y.push_back(sign * values[i]);
  }
  return out;
}

std::string DifferencePlot(const ComparedCurve& c) {
  std::vector<PlotLine> lines;
  lines.push_back(LineOf(c.pair.steps, std::vector<double>(c.pair.size(), 0), '.'));
  if (c.band) {
    lines.push_back(LineOf(c.band->steps, c.band->half_widths, '-'));
    lines.push_back(LineOf(c.band->steps, c.band->half_widths, '-', -1));
  }
  std::vector<double> differences;
  for (size_t i = 0; i < c.pair.size(); ++i) differences.push_back(c.pair.difference(i));
  lines.push_back(LineOf(c.pair.steps, differences, '*'));
  return DrawPlot(lines, kWidth, kHeight);
}

Message DifferenceLine(const ComparedCurve& c) {
  const CurveDifference& d = c.difference;
  Message out = Msg(
      "{}: {} steps, mean |B - A| {:.4g}, at most {:.4g} at step {}, mean relative {:.3g}, {} above, {} below, drift "
      "{:.3g}\n",
      KnownText(CurveKindText(c.kind)), d.count, d.mean_abs, d.max_abs, d.max_step, d.mean_relative, d.positive,
      d.negative, d.drift);
  if (d.bad_a + d.bad_b > 0) {
    out += Msg("  NaN or infinite at {} steps of A and {} of B, which no figure above counts\n", d.bad_a, d.bad_b);
  }
  if (!c.band) return out;
  out += Msg("  golden band of {} runs: {}, half-width at most {:.4g}\n", c.band->runs,
             KnownText(BandConstructionText(c.band->construction)),
             *std::max_element(c.band->half_widths.begin(), c.band->half_widths.end()));
  if (c.band->runs_covered) {
    out += Msg("  of its runs, {} of {} lie in the band of the others, {:.1f} % of the steps\n", *c.band->runs_covered,
               c.band->runs, 100 * c.band->steps_covered);
  }
  return out;
}

}  // namespace

Message CurvesText(const CurvesResult& result, bool plots) {
  Message out(fmt::format("A {}: {}\nB {}: {}\n", OneLine(result.a.path), result.a.format, OneLine(result.b.path),
                          result.b.format));
  for (const Message& note : result.notes) out += Msg("note: {}\n", note);
  for (const ComparedCurve& c : result.curves) out += DifferenceLine(c);
  if (const ComparedCurve* loss = result.Find(CurveKind::kLoss); loss && plots) {
    out += Msg("loss: a A, b B\n");
    out += Message(DrawPlot({LineOf(loss->pair.steps, loss->pair.a, 'a'), LineOf(loss->pair.steps, loss->pair.b, 'b')},
                            kWidth, kHeight));
    out += Msg("B - A: * difference, - golden band\n");
    out += Message(DifferencePlot(*loss));
  }
  out += Msg("rules of the alignment guide:\n");
  for (const CurveRule& rule : result.judgement.rules) {
    out += Msg("  {}: {}: {}\n      {}\n", RuleVerdictName(rule.verdict), rule.id, rule.text, KnownText(rule.rule));
  }
  out += Msg("verdict: {}\n", KnownText(CurveVerdictText(result.judgement.verdict)));
  for (const CurveRule& rule : result.judgement.rules) {
    const bool leads = rule.verdict == RuleVerdict::kFail && rule.step && rule.step == result.judgement.step;
    if (!leads) continue;
    out += Msg("it begins at step {}: {}\n", *rule.step, rule.id);
    break;
  }
  for (const std::string& file : result.files) out += Msg("  result: {}\n", OneLine(file));
  return out;
}

}  // namespace msprobe
