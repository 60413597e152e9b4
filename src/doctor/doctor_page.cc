// The diagnosis as a report of the page that all tools share.
#include "base/message.h"
#include "base/text.h"
#include "doctor/doctor.h"
#include "doctor/doctor_words.h"
#include "report/document.h"

namespace msprobe {
namespace {

std::string OutcomeOf(Diagnosis::Outcome outcome) {
  switch (outcome) {
    case Diagnosis::Outcome::kAgree: return "equal";
    case Diagnosis::Outcome::kRounding: return "round_off";
    case Diagnosis::Outcome::kParted: return "origin";
    case Diagnosis::Outcome::kUndecided: break;
  }
  return "unknown";
}

std::string ToneOf(StageVerdict verdict) {
  switch (verdict) {
    case StageVerdict::kPass: return "good";
    case StageVerdict::kDiffers: return "bad";
    case StageVerdict::kNotSeen:
    case StageVerdict::kUnsure: break;
  }
  return "odd";
}

BothWords BothTitles(const DoctorStage& stage) {
  return {TitleOf(stage, Language::kEnglish), TitleOf(stage, Language::kChinese)};
}

BothWords Labelled(std::string_view en, std::string_view zh, const BothWords& text) {
  return {std::string(en) + text.en, std::string(zh) + text.zh};
}

/// The stages with one of these verdicts, and what was found at each.
void AddStages(const Diagnosis& d, std::initializer_list<StageVerdict> verdicts, const BothWords& title,
               ReportDocument* out) {
  ReportTable table;
  table.columns = {Both("Stage", "阶段"), Both("Verdict", "结论"), Both("Found", "依据")};
  for (const DoctorStage& stage : DoctorStages()) {
    const StageResult& result = d.results[static_cast<size_t>(stage.id)];
    if (std::find(verdicts.begin(), verdicts.end(), result.verdict) == verdicts.end()) continue;
    const StateWords words = VerdictWords(result.verdict);
    ReportCell found{result.evidence, "", {}};
    if (IsOffered(d, result)) {
      found.lines.push_back(result.offer->why);
      found.commands = result.offer->commands;
    }
    table.rows.push_back({{{BothTitles(stage)}, "", {}},
                          {{{std::string(words.en), std::string(words.zh)}}, ToneOf(result.verdict), {}},
                          std::move(found)});
  }
  if (table.rows.empty()) return;
  ReportPart& part = out->parts.emplace_back();
  part.title = title;
  part.blocks.emplace_back().table = std::move(table);
}

void AddCurve(const CurveComparison& loss, ReportDocument* out) {
  if (loss.points.size() < 2) return;
  std::vector<int64_t> steps;
  std::vector<double> a, b;
  for (const CurvePoint& point : loss.points) {
    steps.push_back(point.number);
    a.push_back(point.a);
    b.push_back(point.b);
  }
  ReportPart& part = out->parts.emplace_back();
  part.title = Both("Loss", "loss");
  ReportChart& chart = part.blocks.emplace_back().chart.emplace();
  chart.label = part.title;
  chart.lines = {ChartLine("A", "a", steps, a), ChartLine("B", "b", steps, b)};
  if (!loss.parted) return;
  chart.mark = loss.parted->number;
  chart.mark_words = Both("they part", "分叉");
}

}  // namespace

ReportDocument DoctorDocument(const DoctorReport& report) {
  const Diagnosis& d = report.diagnosis;
  const BothWords headline = HeadlineOf(report);
  ReportDocument out;
  out.head = {"doctor", OutcomeOf(d.outcome), headline.en, headline.zh};
  if (!d.cause_text.empty()) out.lines.push_back(Labelled("cause: ", "原因：", d.cause_text));
  if (!d.fix.empty()) out.lines.push_back(Labelled("fix: ", "修改：", d.fix));
  for (const BothWords& also : d.also) out.lines.push_back(Labelled("also: ", "另：", also));
  for (const auto& [side, run] : {std::pair{"A  ", &report.evidence.a}, {"B  ", &report.evidence.b}}) {
    out.lines.push_back({side + FilesLine(*run, Language::kEnglish), side + FilesLine(*run, Language::kChinese)});
  }
  if (d.next) {
    ReportPart& next = out.parts.emplace_back();
    next.title = Both("Cheapest next run", "代价最小的下一步");
    next.blocks.emplace_back().text = d.next->why;
    next.blocks.emplace_back().commands = d.next->commands;
  }
  AddStages(d, {StageVerdict::kDiffers, StageVerdict::kUnsure}, Both("Where they differ", "不同之处"), &out);
  AddCurve(report.evidence.curves.loss, &out);
  AddStages(d, {StageVerdict::kPass}, Both("Where they agree", "一致之处"), &out);
  AddStages(d, {StageVerdict::kNotSeen}, Both("No data", "没有数据"), &out);
  ReportPart notes;
  notes.title = Both("Notes", "说明");
  for (const RunFiles* run : {&report.evidence.a, &report.evidence.b}) {
    for (const Message& note : run->notes) notes.blocks.emplace_back().text = Both(OneLined(note));
  }
  if (!notes.blocks.empty()) out.parts.push_back(std::move(notes));
  return out;
}

}  // namespace msprobe
