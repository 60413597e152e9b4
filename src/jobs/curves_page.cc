// Curves as one HTML file, with the look of the comparison report: its colours, in both themes, in both languages.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "base/message.h"
#include "base/text.h"
#include "base/words/translate.h"
#include "jobs/curves.h"

namespace msprobe {
namespace {

constexpr std::string_view kPageStyle = R"(
:root{--page:#EEF1F5;--surface:#FFFFFF;--line:#DCE2E9;--ink:#18212C;--muted:#5A6675;--accent:#1F5FD0;--other:#A3480A;
--wash:#E4EDFC;--good:#1F7245;--alarm:#AE2C0A}
:root[data-theme=dark]{--page:#0E1217;--surface:#161B22;--line:#2D3642;--ink:#E3E8EE;--muted:#98A4B3;--accent:#7DB0FF;
--other:#FFB070;--wash:#1C2D47;--good:#4FB07C;--alarm:#FF9B82}
*{box-sizing:border-box}body{margin:0;background:var(--page);color:var(--ink);font:14px/1.5 system-ui,-apple-system,
"Segoe UI",Roboto,"Noto Sans","Noto Sans CJK SC","PingFang SC","Microsoft YaHei",sans-serif}
h1,h2,p{margin:0}h1{font-size:17px}h2{font-size:17px}
header{display:flex;flex-wrap:wrap;align-items:center;gap:6px 12px;padding:10px 24px;background:var(--surface);
border-bottom:1px solid var(--line)}header h1{flex:1 1 auto}
button{font:inherit;color:inherit;padding:5px 13px;border:1px solid var(--line);border-radius:6px;
background:var(--surface);cursor:pointer}:focus-visible{outline:2px solid var(--accent);outline-offset:2px}
main{max-width:1240px;margin:0 auto;padding:20px 24px 60px;display:grid;gap:16px;grid-template-columns:minmax(0,1fr)}
section{background:var(--surface);border:1px solid var(--line);border-radius:10px;padding:18px 20px;min-width:0;
display:flex;flex-direction:column;gap:10px}.verdict{font-size:16px;border-left:4px solid var(--line);padding-left:14px}
.fine{border-color:var(--good)}.bad{border-color:var(--alarm)}.muted{color:var(--muted)}
table{border-collapse:collapse;width:100%}th,td{text-align:left;vertical-align:top;padding:5px 10px 5px 0;
border-bottom:1px solid var(--line);overflow-wrap:anywhere}.number{text-align:right}.fail,.warn{color:var(--alarm);
font-weight:600}svg{width:100%;height:auto;display:block}svg text{fill:var(--muted);font-size:11px}
.ka{color:var(--accent)}.kb{color:var(--other)}
.a{stroke:var(--accent)}.b{stroke:var(--other)}.more{stroke:var(--muted);opacity:.6}.curve{fill:none;stroke-width:1.5}
.band{fill:var(--wash);stroke:none}.axis{stroke:var(--line)}code{font-family:ui-monospace,Menlo,Consolas,monospace;
font-size:12.5px}html:not([lang=zh-CN]) .zh{display:none}html[lang=zh-CN] .en{display:none}
)";

constexpr std::string_view kPageScript = R"(
const root=document.documentElement;
const theme=t=>{root.dataset.theme=t};const language=l=>{root.lang=l};
theme(matchMedia('(prefers-color-scheme: dark)').matches?'dark':'light');
language(navigator.language.startsWith('zh')?'zh-CN':'en');
document.getElementById('theme').onclick=()=>theme(root.dataset.theme==='dark'?'light':'dark');
document.getElementById('language').onclick=()=>language(root.lang==='zh-CN'?'en':'zh-CN');
)";

/// English and, where the words are known, Chinese.
std::string Both(const Message& message) {
  return fmt::format("<span class=\"en\" lang=\"en\">{}</span><span class=\"zh\" lang=\"zh-CN\">{}</span>",
                     PageText(message), PageText(InLanguage(message, Language::kChinese)));
}

/// A title, which is too short to be looked up.
std::string Title(std::string_view english, std::string_view chinese) {
  return fmt::format("<span class=\"en\" lang=\"en\">{}</span><span class=\"zh\" lang=\"zh-CN\">{}</span>", english,
                     chinese);
}

constexpr double kLeft = 76, kRight = 990, kTop = 12, kBottom = 268;
constexpr size_t kMostPoints = 2000;  // of a line: more cannot be seen

struct ChartScale {
  double x0 = INFINITY, x1 = -INFINITY, y0 = INFINITY, y1 = -INFINITY;
  void Take(const std::vector<int64_t>& steps, const std::vector<double>& values, double sign = 1) {
    for (size_t i = 0; i < steps.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      x0 = std::min(x0, static_cast<double>(steps[i]));
      x1 = std::max(x1, static_cast<double>(steps[i]));
      y0 = std::min(y0, sign * values[i]);
      y1 = std::max(y1, sign * values[i]);
    }
  }
  double X(int64_t step) const {
    return x1 > x0 ? kLeft + (static_cast<double>(step) - x0) / (x1 - x0) * (kRight - kLeft) : (kLeft + kRight) / 2;
  }
  double Y(double v) const {
    return y1 > y0 ? kBottom - (v - y0) / (y1 - y0) * (kBottom - kTop) : (kTop + kBottom) / 2;
  }
};

/// At most kMostPoints places: of each stretch the lowest and the highest.
std::vector<size_t> PlacesToDraw(const std::vector<double>& values) {
  std::vector<size_t> out;
  const size_t stretch = std::max<size_t>(1, 2 * values.size() / kMostPoints);
  for (size_t begin = 0; begin < values.size(); begin += stretch) {
    const auto from = values.begin() + static_cast<std::ptrdiff_t>(begin);
    const auto to = values.begin() + static_cast<std::ptrdiff_t>(std::min(values.size(), begin + stretch));
    const auto [low, high] = std::minmax_element(from, to);
    const auto first = static_cast<size_t>(std::min(low, high) - values.begin());
    const auto second = static_cast<size_t>(std::max(low, high) - values.begin());
    out.push_back(first);
    if (second != first) out.push_back(second);
  }
  return out;
}

std::string Polyline(const ChartScale& scale, const std::vector<int64_t>& steps, const std::vector<double>& values,
                     std::string_view css) {
  std::string out, path;
  const auto flush = [&] {
    if (!path.empty()) out += fmt::format("<polyline class=\"curve {}\" points=\"{}\"/>\n", css, path);
    path.clear();
  };
  for (const size_t i : PlacesToDraw(values)) {
    if (!std::isfinite(values[i])) {
      flush();
      continue;
    }
    path += fmt::format("{:.1f},{:.1f} ", scale.X(steps[i]), scale.Y(values[i]));
  }
  flush();
  return out;
}

std::string Frame(const ChartScale& scale, std::string_view label, const std::string& content) {
  std::string out = fmt::format("<svg viewBox=\"0 0 1000 296\" role=\"img\" aria-label=\"{}\">\n", PageText(label));
  for (int i = 0; i <= 4; ++i) {
    const double v = scale.y0 + (scale.y1 - scale.y0) * i / 4, y = scale.Y(v);
    out += fmt::format(
        "<line class=\"axis\" x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\"/><text x=\"{3}\" y=\"{4:.1f}\" "
        "text-anchor=\"end\">{5:.4g}</text>\n",
        kLeft, kRight, y, kLeft - 6, y + 4, v);
  }
  out += content;
  out += fmt::format("<text x=\"{}\" y=\"{}\">{:.0f}</text><text x=\"{}\" y=\"{}\" text-anchor=\"end\">{:.0f}</text>\n",
                     kLeft, kBottom + 18, scale.x0, kRight, kBottom + 18, scale.x1);
  return out + "</svg>\n";
}

std::string ValuesChart(const CurvesResult& result, const ComparedCurve& c) {
  ChartScale scale;
  scale.Take(c.pair.steps, c.pair.a);
  scale.Take(c.pair.steps, c.pair.b);
  if (scale.x0 > scale.x1) return "";
  std::string lines;
  for (const RunCurves& run : result.more_a) {
    const CurvePair pair = PairCurves(result.a.of(c.kind), run.of(c.kind));
    lines += Polyline(scale, pair.steps, pair.b, "more");
  }
  lines += Polyline(scale, c.pair.steps, c.pair.a, "a") + Polyline(scale, c.pair.steps, c.pair.b, "b");
  return Frame(scale, CurveKindText(c.kind), lines);
}

std::string DifferenceChart(const ComparedCurve& c) {
  std::vector<double> differences;
  for (size_t i = 0; i < c.pair.size(); ++i) differences.push_back(c.pair.difference(i));
  ChartScale scale;
  scale.Take(c.pair.steps, differences);
  if (c.band) {
    scale.Take(c.band->steps, c.band->half_widths);
    scale.Take(c.band->steps, c.band->half_widths, -1);
  }
  if (scale.x0 > scale.x1) return "";
  std::string content;
  if (c.band) {
    std::string there, back;
    for (const size_t i : PlacesToDraw(c.band->half_widths)) {
      const double x = scale.X(c.band->steps[i]), w = c.band->half_widths[i];
      there += fmt::format("{:.1f},{:.1f} ", x, scale.Y(w));
      back = fmt::format("{:.1f},{:.1f} ", x, scale.Y(-w)) + back;
    }
    content = fmt::format("<polygon class=\"band\" points=\"{}{}\"/>\n", there, back);
  }
  return Frame(scale, "B - A", content + Polyline(scale, c.pair.steps, differences, "b"));
}

std::string RulesTable(const CurveJudgement& judgement) {
  std::string out = "<table><thead><tr><th scope=\"col\">" + Title("rule", "规则") + "</th><th scope=\"col\">" +
                    Title("result", "结果") + "</th><th scope=\"col\">" + Title("found", "发现") +
                    "</th></tr></thead><tbody>\n";
  for (const CurveRule& rule : judgement.rules) {
    out += fmt::format("<tr><td><code>{}</code><br>{}</td><td class=\"{}\">{}</td><td>{}</td></tr>\n", rule.id,
                       Both(KnownText(rule.rule)), RuleVerdictName(rule.verdict), RuleVerdictName(rule.verdict),
                       Both(rule.text));
  }
  return out + "</tbody></table>\n";
}

std::string FiguresTable(const CurvesResult& result) {
  std::string out = "<table><thead><tr>";
  for (const auto& [english, chinese] : {std::pair("quantity", "量"),
                                         {"steps", "step 数"},
                                         {"mean |B - A|", "|B - A| 均值"},
                                         {"largest |B - A|", "|B - A| 最大值"},
                                         {"mean relative", "平均相对误差"},
                                         {"above and below", "正与负"},
                                         {"drift", "漂移"},
                                         {"golden band", "标杆带"}}) {
    out += "<th scope=\"col\">" + Title(english, chinese) + "</th>";
  }
  out += "</tr></thead><tbody>\n";
  for (const ComparedCurve& c : result.curves) {
    const CurveDifference& d = c.difference;
    const std::string band =
        c.band ? fmt::format("{} ({})", Both(KnownText(BandConstructionText(c.band->construction))), c.band->runs) : "";
    out += fmt::format(
        "<tr><td>{}</td><td>{}</td><td>{:.4g}</td><td>{:.4g} ({})</td><td>{:.3g}</td><td>{} / {}</td><td>{:.3g}</td>"
        "<td>{}</td></tr>\n",
        Both(KnownText(CurveKindText(c.kind))), d.count, d.mean_abs, d.max_abs, d.max_step, d.mean_relative, d.positive,
        d.negative, d.drift, band);
  }
  return out + "</tbody></table>\n";
}

}  // namespace

std::string CurvesPage(const CurvesResult& result) {
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>msprobe "
      "curves</title>\n<style>{}</style></head><body>\n<header><h1>msprobe "
      "curves</h1><button id=\"language\"><span class=\"en\" lang=\"zh-CN\">中文</span><span class=\"zh\" "
      "lang=\"en\">English</span></button><button id=\"theme\">{}</button></header>\n<main>\n",
      kPageStyle, Title("Light or dark", "浅色或深色"));
  out += fmt::format(
      "<section><p class=\"verdict {}\">{}</p>\n<p><b class=\"ka\">A</b> {} ({})<br><b "
      "class=\"kb\">B</b> {} ({})</p>\n",
      result.fine() ? "fine" : "bad", Both(KnownText(CurveVerdictText(result.judgement.verdict))),
      PageText(OneLine(result.a.path)), PageText(result.a.format), PageText(OneLine(result.b.path)),
      PageText(result.b.format));
  for (const RunCurves& run : result.more_a) {
    out += fmt::format("<p class=\"muted\">A {} ({})</p>\n", PageText(OneLine(run.path)), PageText(run.format));
  }
  for (const Message& note : result.notes) out += "<p class=\"muted\">" + Both(note) + "</p>\n";
  out += RulesTable(result.judgement) + "</section>\n";
  for (const ComparedCurve& c : result.curves) {
    out += "<section><h2>" + Both(KnownText(CurveKindText(c.kind))) + "</h2>\n" + ValuesChart(result, c);
    if (c.kind != CurveKind::kLearningRate) {
      out +=
          "<p class=\"muted\">" + Title("B - A and the golden band", "B - A 与标杆带") + "</p>\n" + DifferenceChart(c);
    }
    out += "</section>\n";
  }
  out += "<section><h2>" + Title("Differences", "差异") + "</h2>\n" + FiguresTable(result) + "</section>\n</main>\n";
  return out + fmt::format("<script>{}</script></body></html>\n", kPageScript);
}

}  // namespace msprobe
