// The diagnosis for a terminal, for programs and as a page.
#include <fmt/format.h>

#include "base/message.h"
#include "base/text.h"
#include "base/words/translate.h"
#include "doctor/doctor.h"
#include "doctor/doctor_words.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"

namespace msprobe {
namespace {

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

}  // namespace msprobe
