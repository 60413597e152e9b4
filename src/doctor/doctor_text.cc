// The diagnosis for a terminal, for programs and as a page.
#include <fmt/format.h>

#include "base/message.h"
#include "base/text.h"
#include "base/words/translate.h"
#include "doctor/doctor.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"

namespace msprobe {
namespace {

struct StateWords {
  std::string_view en, zh;
};

StateWords VerdictWords(StageVerdict verdict) {
  switch (verdict) {
    case StageVerdict::kNotSeen: return {"not seen", "未看到"};
    case StageVerdict::kPass: return {"pass", "一致"};
    case StageVerdict::kUnsure: return {"cannot say", "无法判断"};
    case StageVerdict::kDiffers: return {"differs", "不同"};
  }
  return {};
}

/// Whether a run that shows a stage is worth naming: the stage was not seen, and where the runs part is open.
bool IsOffered(const Diagnosis& d, const StageResult& result) {
  const bool open =
      d.outcome == Diagnosis::Outcome::kUndecided || (d.outcome == Diagnosis::Outcome::kParted && !d.exact);
  return open && result.verdict == StageVerdict::kNotSeen && result.offer && !result.offer->commands.empty() &&
         !(d.next && d.next->commands == result.offer->commands);
}

const DoctorStage& StageOfId(StageId id) { return DoctorStages()[static_cast<size_t>(id)]; }

std::string TitleOf(const DoctorStage& stage, Language language) {
  return std::string(language == Language::kChinese ? stage.zh : stage.en);
}

/// What of the recordings was not there to be seen: it comes before all that is concluded.
std::string NotWholeText(const DumpEvidence& dumps, Language language) {
  std::string out = GapText(dumps.gaps, language);
  const bool chinese = language == Language::kChinese;
  if (dumps.unread > 0) {
    if (!out.empty()) out += chinese ? "；" : "; ";
    out += fmt::format(fmt::runtime(chinese ? "{} 行没有 tensor" : "{} rows had no tensor"), dumps.unread);
  }
  return out.empty() ? out : out + (chinese ? "。" : ". ");
}

BothWords AnswerOf(const DoctorReport& report) {
  const Diagnosis& d = report.diagnosis;
  const std::string en = d.stage ? TitleOf(StageOfId(*d.stage), Language::kEnglish) : "";
  const std::string zh = d.stage ? TitleOf(StageOfId(*d.stage), Language::kChinese) : "";
  switch (d.outcome) {
    case Diagnosis::Outcome::kAgree:
      return Both("The runs agree in all that was seen.", "在看到的范围内两次运行一致。");
    case Diagnosis::Outcome::kRounding:
      return Both("The runs differ by no more than rounding explains, in all that was seen.",
                  "在看到的范围内，两次运行的差异均可由舍入解释。");
    case Diagnosis::Outcome::kUndecided:
      if (!d.stage && !report.evidence.dumps.whole) {
        return Both("Not decided: not all of the recordings could be seen.", "尚不能判断：未能看到全部采集数据。");
      }
      return d.stage ? BothWords{"Not decided: from stage \"" + en + "\" on, rounding or a cause may be at work.",
                                 "尚不能判断：从“" + zh + "”阶段起，可能是舍入，也可能另有原因。"}
                     : Both("Not decided: what was given does not show what the runs did.",
                            "尚不能判断：给出的文件未显示两次运行的行为。");
    case Diagnosis::Outcome::kParted: break;
  }
  std::string step, step_zh;
  if (d.step >= 0) {
    step = fmt::format(", step {}", StepNumber(report.evidence, d.step));
    step_zh = fmt::format("第 {} 步", StepNumber(report.evidence, d.step));
    if (report.evidence.dumps.seen) {  // whose verdict names steps, too, and counts them from 0
      step += fmt::format(" (step {} of the dumps)", d.step);
      step_zh += fmt::format("，即 dump 的 step {}", d.step);
    }
    step_zh = "（" + step_zh + "）";
  }
  return {"The runs part at stage \"" + en + "\"" + step + ".", "两次运行在“" + zh + "”阶段" + step_zh + "分叉。"};
}

BothWords HeadlineOf(const DoctorReport& report) {
  const BothWords answer = AnswerOf(report);
  const DumpEvidence& dumps = report.evidence.dumps;
  return {NotWholeText(dumps, Language::kEnglish) + answer.en, NotWholeText(dumps, Language::kChinese) + answer.zh};
}

std::string FilesLine(const RunFiles& run, Language language) {
  std::vector<std::string> parts;
  const auto add = [&](size_t count, std::string_view en, std::string_view zh) {
    if (count > 0) parts.push_back(fmt::format("{} {}", count, language == Language::kChinese ? zh : en));
  };
  add(run.configs.size(), "configurations", "个配置");
  add(run.logs.size(), "logs", "个日志");
  add(run.checkpoints.size(), "checkpoints", "个权重文件");
  add(run.batches.size(), "saved batches", "步数据");
  add(run.gradients.size(), "saved gradients", "步梯度");
  size_t steps = 0;
  for (const RunDump& dump : run.dumps) steps += dump.steps.size();
  add(steps, "recorded steps", "步 dump");
  add(run.grafts.size(), "recordings with inputs of A", "份使用 A 输入的 dump");
  add(run.optimizer_records.size(), "records of the optimizer", "份优化器记录");
  return OneLine(run.given.front()) + ": " + fmt::format("{}", fmt::join(parts, ", "));
}

void WriteWords(JsonWriter* json, std::string_view key, const BothWords& words) {
  json->ObjectMember(key, [&] {
    json->Member("en", words.en);
    json->Member("zh", words.zh);
  });
}

void WriteNext(JsonWriter* json, std::string_view key, const std::optional<NextRun>& next) {
  if (!next) {
    json->Member(key, nullptr);
    return;
  }
  json->ObjectMember(key, [&] {
    json->Member("commands", next->commands);
    WriteWords(json, "why", next->why);
  });
}

void WriteRun(JsonWriter* json, std::string_view key, const RunFiles& run) {
  json->ObjectMember(key, [&] {
    json->Member("given", run.given);
    json->Member("configurations", run.configs);
    json->ArrayMember("logs", run.logs, [&](const TrainingLog& log) {
      json->Object([&] {
        json->Member("path", log.path);
        json->Member("steps", log.steps.size());
      });
    });
    json->ArrayMember("checkpoints", run.checkpoints, [&](const RunCheckpoint& checkpoint) {
      json->Object([&] {
        json->Member("path", checkpoint.path);
        json->Member("step", checkpoint.step);
      });
    });
    json->ArrayMember("dumps", run.dumps, [&](const RunDump& dump) {
      json->Object([&] {
        json->Member("path", dump.path);
        json->Member("steps", dump.steps);
      });
    });
    json->Member("batches", run.batches.size());
    json->Member("gradients", run.gradients.size());
    json->Member("optimizer_records", run.optimizer_records);
    json->Member("notes", run.notes);
  });
}

std::string_view NameOf(GraftEvidence::Outcome outcome) {
  switch (outcome) {
    case GraftEvidence::Outcome::kNone: return "none";
    case GraftEvidence::Outcome::kSame: return "only_inputs";
    case GraftEvidence::Outcome::kModule: return "module";
    case GraftEvidence::Outcome::kUnknown: return "unknown";
  }
  return "";
}

void WriteGraft(JsonWriter* json, const GraftEvidence& graft) {
  json->ObjectMember("graft", [&] {
    json->Member("outcome", NameOf(graft.outcome));
    json->Key("step");
    graft.step >= 0 ? json->Int(graft.step + 1) : json->Null();
    json->Member("modules", graft.modules);
    json->Member("module", graft.module);
    WriteWords(json, "why", Both(graft.why));
  });
}

constexpr std::string_view kPageStyle =
    ":root{color-scheme:light dark;--line:#8886;--bad:#b3261e;--ok:#1b6e3a;--odd:#7a5900}"
    "@media(prefers-color-scheme:dark){:root{--bad:#ff8a80;--ok:#7ddc9a;--odd:#ffd166}}"
    "body{font:16px/1.55 system-ui,sans-serif;margin:0 auto;max-width:60rem;padding:1.5rem}"
    "h1{font-size:1.4rem}h2{font-size:1.1rem;margin-top:2rem}pre{overflow:auto;padding:.8rem;border:1px solid "
    "var(--line);border-radius:.4rem}ol{list-style:none;padding:0}li.stage{border-top:1px solid var(--line);padding:"
    ".6rem 0}li.stage>strong{display:inline-block;min-width:18rem}.differs{color:var(--bad)}.pass{color:var(--ok)}"
    ".cannot_say{color:var(--odd)}svg{width:100%;height:auto;border:1px solid var(--line)}.a{stroke:#3178c6}.b{stroke:"
    "#d9480f}polyline{fill:none;stroke-width:1.5}text{fill:currentColor;font-size:11px}";

/// The losses of both runs, with where they part.
std::string CurvePicture(const CurveComparison& loss, bool chinese) {
  if (loss.points.size() < 2) return {};
  constexpr double kWidth = 800, kHeight = 240, kMargin = 30;
  double low = INFINITY, high = -INFINITY;
  for (const CurvePoint& p : loss.points) {
    for (const double v : {p.a, p.b}) {
      if (!std::isfinite(v)) continue;
      low = std::min(low, v);
      high = std::max(high, v);
    }
  }
  if (!(high >= low)) return {};
  if (high == low) high = low + 1;
  const double last = std::max(1, loss.points.back().step);
  const auto x = [&](const CurvePoint& p) { return kMargin + (kWidth - 2 * kMargin) * p.step / last; };
  const auto y = [&](double v) { return kHeight - kMargin - (kHeight - 2 * kMargin) * (v - low) / (high - low); };
  std::string lines[2];
  const size_t stride = std::max<size_t>(1, loss.points.size() / 2000);
  for (size_t i = 0; i < loss.points.size(); i += stride) {
    const CurvePoint& p = loss.points[i];
    if (std::isfinite(p.a)) lines[0] += fmt::format("{:.1f},{:.1f} ", x(p), y(p.a));
    if (std::isfinite(p.b)) lines[1] += fmt::format("{:.1f},{:.1f} ", x(p), y(p.b));
  }
  std::string out = fmt::format(
      "<h2>{}</h2>\n<svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"loss\"><polyline class=\"a\" points=\"{}\"/>"
      "<polyline class=\"b\" points=\"{}\"/>",
      chinese ? "loss（A 蓝，B 橙）" : "Loss (A blue, B orange)", kWidth, kHeight, lines[0], lines[1]);
  if (loss.parted) {
    out += fmt::format(
        "<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"10\" y2=\"{1}\" stroke=\"currentColor\" "
        "stroke-dasharray=\"4\"/><text x=\"{2:.1f}\" y=\"20\">{3} {4}</text>",
        x(*loss.parted), kHeight - kMargin, x(*loss.parted) + 4, chinese ? "分叉" : "parts at step",
        loss.parted->number);
  }
  out += fmt::format("<text x=\"2\" y=\"{:.0f}\">{:.4g}</text><text x=\"2\" y=\"{:.0f}\">{:.4g}</text></svg>\n",
                     y(high) + 4, high, y(low), low);
  return out;
}

}  // namespace

std::string DoctorText(const DoctorReport& report, Language language) {
  const Diagnosis& d = report.diagnosis;
  const bool zh = language == Language::kChinese;
  std::string out = "A  " + FilesLine(report.evidence.a, language) + "\n";
  out += "B  " + FilesLine(report.evidence.b, language) + "\n\n";
  out += HeadlineOf(report).In(language) + "\n";
  if (!d.cause_text.empty()) out += (zh ? "  原因：" : "  cause: ") + OneLine(d.cause_text.In(language)) + "\n";
  if (!d.fix.empty()) out += (zh ? "  修改：" : "  fix: ") + OneLine(d.fix.In(language)) + "\n";
  for (const BothWords& also : d.also) out += (zh ? "  另：" : "  also: ") + OneLine(also.In(language)) + "\n";
  out += "\n";
  for (const DoctorStage& stage : DoctorStages()) {
    const StageResult& result = d.results[static_cast<size_t>(stage.id)];
    const StateWords words = VerdictWords(result.verdict);
    out += fmt::format("{:<12}{}\n", zh ? words.zh : words.en, TitleOf(stage, language));
    for (const BothWords& line : result.evidence) out += "            " + OneLine(line.In(language)) + "\n";
    if (!IsOffered(d, result)) continue;
    out += (zh ? "            查看方法：" : "            to see it: ") + result.offer->why.In(language) + "\n";
    for (const std::string& command : result.offer->commands) out += "              " + command + "\n";
  }
  if (d.next) {
    out += (zh ? "\n代价最小的下一步：" : "\nCheapest next run: ") + d.next->why.In(language) + "\n";
    for (const std::string& command : d.next->commands) out += "  " + command + "\n";
  }
  const DoctorEvidence& evidence = report.evidence;
  for (const auto* notes : {&evidence.a.notes, &evidence.b.notes, &evidence.curves.notes, &evidence.dumps.notes}) {
    for (const Message& note : *notes) out += (zh ? "注意：" : "note: ") + OneLine(InLanguage(note, language)) + "\n";
  }
  for (const std::string& file : report.files) out += InLanguage(Msg("  result: {}\n", OneLine(file)), language);
  return out;
}

std::string DoctorJson(const DoctorReport& report) {
  const Diagnosis& d = report.diagnosis;
  JsonWriter json({.indent = 2, .comma = ",", .ascii = false, .not_finite = JsonStyle::NotFinite::kNull});
  json.BeginObject();
  json.Member("version", 1);
  json.Member("outcome", NameOf(d.outcome));
  json.Member("bug", d.bug);
  json.Key("stage");
  d.stage ? json.Value(StageOfId(*d.stage).name) : json.Null();
  json.Key("step");
  d.step >= 0 ? json.Int(d.step + 1) : json.Null();
  json.Key("log_step");
  d.step >= 0 ? json.Int(StepNumber(report.evidence, d.step)) : json.Null();
  json.Member("cause", d.cause);
  json.Member("exact", d.exact);
  json.Member("whole", report.evidence.dumps.whole);
  json.Key("not_whole"), WriteGaps(&json, report.evidence.dumps.gaps);
  json.Member("rows_without_tensor", report.evidence.dumps.unread);
  WriteWords(&json, "headline", HeadlineOf(report));
  WriteWords(&json, "cause_text", d.cause_text);
  WriteWords(&json, "fix", d.fix);
  json.ArrayMember("also", d.also, [&](const BothWords& words) {
    json.Object([&] {
      json.Member("en", words.en);
      json.Member("zh", words.zh);
    });
  });
  WriteNext(&json, "next", d.next);
  json.ArrayMember("stages", DoctorStages(), [&](const DoctorStage& stage) {
    const StageResult& result = d.results[static_cast<size_t>(stage.id)];
    json.Object([&] {
      json.Member("stage", stage.name);
      json.Member("verdict", NameOf(result.verdict));
      json.Key("step");
      result.step >= 0 ? json.Int(result.step + 1) : json.Null();
      json.Member("cause", result.cause);
      json.ArrayMember("evidence", result.evidence, [&](const BothWords& words) {
        json.Object([&] {
          json.Member("en", words.en);
          json.Member("zh", words.zh);
        });
      });
      WriteNext(&json, "next", result.next);
      WriteNext(&json, "offer", result.offer);
    });
  });
  WriteRun(&json, "a", report.evidence.a);
  WriteRun(&json, "b", report.evidence.b);
  WriteGraft(&json, report.evidence.graft);
  json.Member("compare_html", report.evidence.dumps.html);
  WriteConclusion(Conclude(JudgementsOf(d, Language::kEnglish)), &json);
  json.EndObject();
  return json.Take() + "\n";
}

std::string DoctorHtml(const DoctorReport& report, Language language) {
  const Diagnosis& d = report.diagnosis;
  const bool zh = language == Language::kChinese;
  std::string out = fmt::format(
      "<!doctype html>\n<html lang=\"{}\"><head><meta charset=\"utf-8\"><meta name=\"viewport\" "
      "content=\"width=device-width\"><title>msprobe doctor</title>\n<style>{}</style></head><body><main>\n",
      zh ? "zh" : "en", kPageStyle);
  out += "<h1>" + PageText(HeadlineOf(report).In(language)) + "</h1>\n";
  out += "<p>A " + PageText(FilesLine(report.evidence.a, language)) + "<br>B " +
         PageText(FilesLine(report.evidence.b, language)) + "</p>\n<ul>\n";
  if (!d.cause_text.empty())
    out += std::string("<li>") + (zh ? "原因：" : "cause: ") + PageText(d.cause_text.In(language)) + "</li>\n";
  if (!d.fix.empty()) out += std::string("<li>") + (zh ? "修改：" : "fix: ") + PageText(d.fix.In(language)) + "</li>\n";
  for (const BothWords& also : d.also)
    out += std::string("<li>") + (zh ? "另：" : "also: ") + PageText(also.In(language)) + "</li>\n";
  out += "</ul>\n";
  if (d.next) {
    out += std::string("<h2>") + (zh ? "代价最小的下一步" : "Cheapest next run") + "</h2>\n<p>" +
           PageText(d.next->why.In(language)) + "</p>\n<pre>";
    for (const std::string& command : d.next->commands) out += PageText(command) + "\n";
    out += "</pre>\n";
  }
  out += std::string("<h2>") + (zh ? "各阶段" : "Stages") + "</h2>\n<ol>\n";
  for (const DoctorStage& stage : DoctorStages()) {
    const StageResult& result = d.results[static_cast<size_t>(stage.id)];
    const StateWords words = VerdictWords(result.verdict);
    out += fmt::format("<li class=\"stage\"><strong>{}</strong> <span class=\"{}\">{}</span>",
                       PageText(TitleOf(stage, language)), NameOf(result.verdict), zh ? words.zh : words.en);
    if (!result.evidence.empty()) {
      out += "<ul>";
      for (const BothWords& line : result.evidence) out += "<li>" + PageText(line.In(language)) + "</li>";
      out += "</ul>";
    }
    if (IsOffered(d, result)) {
      out += "<p>" + PageText(result.offer->why.In(language)) + "</p><pre>";
      for (const std::string& command : result.offer->commands) out += PageText(command) + "\n";
      out += "</pre>";
    }
    out += "</li>\n";
  }
  out += "</ol>\n" + CurvePicture(report.evidence.curves.loss, zh);
  return out + "</main></body></html>\n";
}

}  // namespace msprobe
