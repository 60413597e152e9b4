#include "jobs/configuration/run_checklist.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "checks/pack.h"
#include "config/read_configuration.h"
#include "jobs/configuration/checkpoint_settings.h"
#include "jobs/configuration/configuration_page.h"
#include "jobs/configuration/recorded_batches.h"
#include "jobs/configuration/round_trip.h"
#include "jobs/configuration/secrets.h"
#include "jobs/configuration/tokenizer_files.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"
#include "sheet/workbook.h"

namespace msprobe {
namespace {

constexpr size_t kMostListed = 40;  // settings, for a terminal
constexpr std::string_view kAlone = "these are given at one side only, and what the other takes for them is not known";
constexpr std::string_view kAloneZh = "这些设置仅一侧给出，另一侧的默认值未知";
constexpr JsonStyle kReportStyle{.indent = 2, .comma = ",", .ascii = false};

/// The files of a side together, packs last: they hold what ran.
StatusOr<EffectiveRun> ReadSide(const std::vector<std::string>& paths, std::vector<Message>* warnings) {
  Configuration configuration;
  configuration.given = paths;
  Pack all, recorded;
  TokenRows rows;
  bool packed = false, batches = false;
  for (const std::string& path : paths) {
    if (IsDirectory(path)) {
      MSP_ASSIGN_OR_RETURN(const bool found, AddRecordedBatches(path, &recorded, &rows));
      batches |= found;
      if (found) continue;
    }
    if (IsDirectory(path) || IsTokenizerFile(path)) {
      MSP_ASSIGN_OR_RETURN(const bool found, AddTokenizer(path, &configuration));
      // The directory of a model has its configuration, too.
      if (found && (!IsDirectory(path) || !IsRegularFile(JoinPath(path, "config.json")))) continue;
    }
    if (!EndsWith(path, ".zip")) {
      MSP_RETURN_IF_ERROR(MayBeCheckpoint(path) ? AddCheckpointSettings(path, &configuration)
                                                : AddFile(path, &configuration));
      continue;
    }
    if (packed) return UsageError(Msg("{} is the second pack of one run: give one zip file a side", path));
    MSP_ASSIGN_OR_RETURN(const PackFile file, PackFile::Open(path));
    MSP_ASSIGN_OR_RETURN(all, file.Read());
    packed = true;
  }
  MSP_RETURN_IF_ERROR(AddRoundTrip(rows, &configuration));
  warnings->insert(warnings->end(), configuration.notes.begin(), configuration.notes.end());
  warnings->insert(warnings->end(), all.warnings.begin(), all.warnings.end());
  all.dataset.merge(recorded.dataset);
  EffectiveRun run(std::move(configuration), packed || batches ? &all : nullptr);
  return run;
}

/// What tells nothing by itself can still be held against another side.
Status KnownOrCompared(const EffectiveRun& run, const std::vector<std::string>& paths, bool pair,
                       ChecklistReport* report) {
  if (!run.dialects().empty()) return OkStatus();
  const auto& sources = run.configuration().sources;
  const bool any = std::any_of(sources.begin(), sources.end(), [](const auto& s) { return !s.settings.empty(); });
  if (pair && !any && !run.configuration().unread.empty()) return OkStatus();  // which is said of that file
  if (!pair || !any) {
    return BadInput(
        Msg("{} sets nothing that a known stack (Megatron, MindFormers, transformers, DeepSpeed, verl, ...) "
            "names: give the script, yaml, json, toml or log of the training",
            OneLine(paths[0])));
  }
  report->not_known.push_back(paths[0]);
  report->warnings.push_back(
      Msg("{} is of no stack that is known: its settings are compared by their names, and no rule looks at them",
          OneLine(paths[0])));
  return OkStatus();
}

/// Rules that could fail if it were known in which unit a side of no known stack says a number.
void FindNotCompared(const EffectiveRun& target, const EffectiveRun& golden, ChecklistReport* report) {
  for (const CheckFinding& finding : report->findings) {
    if (finding.verdict != CheckVerdict::kAsk || finding.rule->quantity.empty()) continue;
    const Fact *a = target.Find(finding.rule->quantity), *b = golden.Find(finding.rule->quantity);
    if (a && b && (!a->also.empty() || !b->also.empty())) report->not_compared.emplace_back(finding.rule->id);
  }
}

std::vector<std::string> FrameworksOf(const EffectiveRun& run) {
  std::vector<std::string> out;
  for (const ConfigDialect dialect : run.dialects()) out.emplace_back(NameOf(dialect));
  return out;
}

std::vector<const CheckFinding*> WorstFirst(const ChecklistReport& report) {
  std::vector<const CheckFinding*> out;
  for (const CheckFinding& finding : report.findings) out.push_back(&finding);
  std::stable_sort(out.begin(), out.end(), [](const auto* a, const auto* b) { return a->verdict > b->verdict; });
  return out;
}

Sheet FindingSheet(const ChecklistReport& report, Language language) {
  Sheet out{"checklist",
            {"rule", "section", "verdict", "target", "golden", "target from", "golden from", "reason", "fix"},
            {}};
  const auto add = [&](CheckVerdict verdict, const std::vector<std::string>& texts) {
    std::vector<SheetValue> row;
    for (const std::string& text : texts) row.push_back(SheetValue::Of(text));
    row[2].color = verdict == CheckVerdict::kFail   ? Cell::Color::kRed
                   : verdict == CheckVerdict::kWarn ? Cell::Color::kYellow
                                                    : Cell::Color::kNone;
    out.rows.push_back(std::move(row));
  };
  for (const CheckFinding* finding : WorstFirst(report)) {
    add(finding->verdict,
        {std::string(finding->rule->id), std::string(finding->rule->section), std::string(NameOf(finding->verdict)),
         finding->target, finding->golden, finding->target_origin, finding->golden_origin,
         std::string(finding->Reason(language)), std::string(finding->Fix(language))});
  }
  for (const SettingDifference& one : report.settings) {
    if (one.incidental || one.alone) continue;
    add(CheckVerdict::kWarn, {"setting." + one.key, "settings", std::string(NameOf(CheckVerdict::kWarn)), one.target,
                              one.golden, one.target_origin, one.golden_origin,
                              std::string(language == Language::kChinese ? "两侧不同，且没有规则涉及它"
                                                                         : "it differs, and no rule knows it"),
                              std::string()});
  }
  if (const AloneSettings alone = AloneOf(report.settings); alone.Any()) {
    add(CheckVerdict::kAsk,
        {"settings.one_side", "settings", std::string(NameOf(CheckVerdict::kAsk)), alone.target, alone.golden,
         std::string(), std::string(), std::string(language == Language::kChinese ? kAloneZh : kAlone), std::string()});
  }
  return out;
}

Sheet EffectiveSheet(const EffectiveRun& target, const EffectiveRun* golden) {
  Sheet out{"effective", {"quantity", "target", "golden", "target from", "golden from"}, {}};
  std::vector<std::string> names;
  for (const auto& [name, fact] : target.facts()) names.push_back(name);
  if (golden) {
    for (const auto& [name, fact] : golden->facts()) names.push_back(name);
  }
  std::sort(names.begin(), names.end());
  names.erase(std::unique(names.begin(), names.end()), names.end());
  for (const std::string& name : names) {
    const Fact *a = target.Find(name), *b = golden ? golden->Find(name) : nullptr;
    const auto text = [](const Fact* fact) { return SheetValue::Of(fact ? fact->value.Shown() : std::string()); };
    const auto origin = [](const Fact* fact) { return SheetValue::Of(fact ? fact->origin : std::string()); };
    out.rows.push_back({SheetValue::Of(name), text(a), text(b), origin(a), origin(b)});
  }
  return out;
}

Sheet SettingSheet(const ChecklistReport& report) {
  Sheet out{"settings", {"setting", "target", "golden", "target from", "golden from", "incidental"}, {}};
  for (const SettingDifference& one : report.settings) {
    out.rows.push_back({SheetValue::Of(one.key), SheetValue::Of(one.target), SheetValue::Of(one.golden),
                        SheetValue::Of(one.target_origin), SheetValue::Of(one.golden_origin),
                        SheetValue::Of(std::string(one.incidental ? "yes" : ""))});
  }
  return out;
}

/// Of a value that a side does not set, so that the other's stands beside something.
std::string OrNotSet(const std::string& value) { return value.empty() ? "not set" : value; }

Status WriteText(const std::string& path, const std::string& text, std::vector<std::string>* files) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  files->push_back(path);
  return file.Commit();
}

}  // namespace

size_t ChecklistReport::Count(CheckVerdict verdict) const {
  const auto of_rules = std::count_if(findings.begin(), findings.end(),
                                      [&](const CheckFinding& finding) { return finding.verdict == verdict; });
  const auto others =
      std::count_if(settings.begin(), settings.end(), [](const auto& s) { return !s.incidental && !s.alone; });
  const bool asked = verdict == CheckVerdict::kAsk && AloneOf(settings).Any();  // together
  return static_cast<size_t>(of_rules + (verdict == CheckVerdict::kWarn ? others : 0)) + (asked ? 1 : 0);
}

StatusOr<ChecklistReport> RunChecklistOfFiles(const std::vector<std::string>& target,
                                              const std::vector<std::string>& golden, const std::string& output,
                                              Language language) {
  ChecklistReport out;
  MSP_ASSIGN_OR_RETURN(const EffectiveRun left, ReadSide(target, &out.warnings));
  std::optional<EffectiveRun> right;
  if (!golden.empty()) {
    MSP_ASSIGN_OR_RETURN(right, ReadSide(golden, &out.warnings));
    out.frameworks[1] = FrameworksOf(*right);
    out.settings = DifferentSettings(left, *right);
    MSP_RETURN_IF_ERROR(KnownOrCompared(*right, golden, true, &out));
  }
  MSP_RETURN_IF_ERROR(KnownOrCompared(left, target, right.has_value(), &out));
  out.pair = right.has_value();
  out.frameworks[0] = FrameworksOf(left);
  out.findings = RunChecklist(left, right ? &*right : nullptr);
  if (right) FindNotCompared(left, *right, &out);
  for (const EffectiveRun* run : {&std::as_const(left), right ? &std::as_const(*right) : nullptr}) {
    if (!run || !out.pair) continue;
    const std::vector<std::string>& unread = run->configuration().unread;
    out.not_read.insert(out.not_read.end(), unread.begin(), unread.end());
  }
  if (output.empty()) return out;
  MSP_RETURN_IF_ERROR(MakeOutputDir(output));
  const std::string book = JoinPath(output, "checklist.xlsx"), page = JoinPath(output, "checklist.html");
  const Sheet effective = EffectiveSheet(left, right ? &*right : nullptr);
  MSP_RETURN_IF_ERROR(WriteWorkbook(book, {FindingSheet(out, language), effective, SettingSheet(out)}));
  MSP_RETURN_IF_ERROR(WriteText(JoinPath(output, "checklist.json"), ChecklistJson(out), &out.files));
  out.files.insert(out.files.begin(), book);
  const ConfigurationSides sides{{target, golden}, {out.frameworks[0], out.frameworks[1]}};
  MSP_ASSIGN_OR_RETURN(const bool drawn, WriteChecklistPage(page, sides, WorstFirst(out), out.settings, effective,
                                                            out.warnings, out.files));
  if (drawn) out.files.push_back(page);
  return out;
}

std::vector<Judgement> JudgementsOf(const ChecklistReport& report, Language language) {
  std::vector<Judgement> out;
  for (const CheckFinding& finding : report.findings) {
    Judgement& one = out.emplace_back();
    switch (finding.verdict) {
      case CheckVerdict::kPass: one.kind = JudgementKind::kBitEqual; break;
      case CheckVerdict::kAsk:
      case CheckVerdict::kWarn: one.kind = JudgementKind::kAskPerson; break;
      case CheckVerdict::kFail: one.kind = JudgementKind::kBug; break;
      case CheckVerdict::kSkip:
      case CheckVerdict::kUnseen: one.asked = false; break;
    }
    one.about = Message(std::string(finding.rule->id));
    one.evidence.emplace_back(std::string(finding.Reason(language)));
    one.basis = Msg("the rules of the checklist");
  }
  for (const SettingDifference& difference : report.settings) {
    if (difference.incidental || difference.alone) continue;
    Judgement& one = out.emplace_back();
    one.kind = JudgementKind::kAskPerson;
    one.about = Message(difference.key);
    one.evidence.push_back(Msg("it differs, and no rule knows it"));
  }
  if (AloneOf(report.settings).Any()) {
    Judgement& one = out.emplace_back();
    one.kind = JudgementKind::kAskPerson;
    one.about = Message("settings.one_side");
    one.evidence.push_back(Msg("these are given at one side only, and what the other takes for them is not known"));
  }
  for (const std::string& file : report.not_known) {
    Judgement& one = out.emplace_back();
    one.kind = JudgementKind::kCannotSay;
    one.about = Message(OneLine(file));
    one.evidence.push_back(Msg("it is of no stack that is known"));
  }
  for (const std::string& file : report.not_read) {
    Judgement& one = out.emplace_back();
    one.kind = JudgementKind::kCannotSay;
    one.about = Message(file);
    one.evidence.push_back(Msg("it is not here, and may set what any rule looks at"));
  }
  for (const std::string& rule : report.not_compared) {
    Judgement& one = out.emplace_back();
    one.kind = JudgementKind::kCannotSay;
    one.about = Message(rule);
    one.evidence.push_back(Msg("a side of no known stack does not say its unit"));
  }
  return out;
}

std::string ChecklistJson(const ChecklistReport& report) {
  JsonWriter json(kReportStyle);
  json.BeginObject();
  json.Member("target_frameworks", report.frameworks[0]);
  json.Member("golden_frameworks", report.frameworks[1]);
  json.ObjectMember("verdicts", [&] {
    for (const CheckVerdict verdict :
         {CheckVerdict::kPass, CheckVerdict::kUnseen, CheckVerdict::kAsk, CheckVerdict::kWarn, CheckVerdict::kFail}) {
      json.Member(NameOf(verdict), report.Count(verdict));
    }
  });
  json.Member("not_compared", report.not_compared);
  json.Member("not_read", report.not_read);
  json.Key("findings");
  json.BeginArray();
  const auto write = [&](std::string_view rule, std::string_view section, std::string_view verdict,
                         const std::string& target, const std::string& golden, const std::string& target_from,
                         const std::string& golden_from, std::string_view reason, std::string_view fix) {
    json.BeginObject();
    json.Member("rule", rule);
    json.Member("section", section);
    json.Member("verdict", verdict);
    json.Member("target", target);
    json.Member("golden", golden);
    json.Member("target_from", target_from);
    json.Member("golden_from", golden_from);
    json.Member("reason", reason);
    json.Member("fix", fix);
    json.EndObject();
  };
  for (const CheckFinding& finding : report.findings) {
    write(finding.rule->id, finding.rule->section, NameOf(finding.verdict), finding.target, finding.golden,
          finding.target_origin, finding.golden_origin, finding.Reason(Language::kEnglish), finding.rule->fix);
  }
  for (const SettingDifference& one : report.settings) {
    if (one.incidental || one.alone) continue;
    write("setting." + one.key, "settings", NameOf(CheckVerdict::kWarn), OrNotSet(one.target), OrNotSet(one.golden),
          one.target_origin, one.golden_origin, "it differs, and no rule knows it", "set it to the same at both sides");
  }
  if (const AloneSettings alone = AloneOf(report.settings); alone.Any()) {
    write("settings.one_side", "settings", NameOf(CheckVerdict::kAsk), alone.target, alone.golden, "", "", kAlone,
          "give the program (.py) of the other side, or look up what it takes for them");
  }
  json.EndArray();
  json.Member("warnings", report.warnings);
  WriteConclusion(Conclude(JudgementsOf(report, Language::kEnglish)), &json);
  json.EndObject();
  return json.Take() + "\n";
}

Message ChecklistText(const ChecklistReport& report, Language language) {
  Message out;
  std::string asked;
  for (const CheckFinding* finding : WorstFirst(report)) {
    if (finding->verdict == CheckVerdict::kPass || finding->verdict == CheckVerdict::kUnseen) continue;
    if (finding->verdict == CheckVerdict::kAsk) {
      asked += (asked.empty() ? "" : ", ") + std::string(finding->rule->id);
      continue;
    }
    out += Message(fmt::format("{}  {}: {}\n", NameOf(finding->verdict), finding->rule->id, finding->Reason(language)));
    for (const auto& [side, value, origin] : {std::tuple("target", finding->target, finding->target_origin),
                                              {"golden", finding->golden, finding->golden_origin}}) {
      if (!value.empty()) out += Msg("      {} {} ({})\n", side, OneLine(value), OriginMessage(OneLine(origin)));
    }
    out += Message(fmt::format("      -> {}\n", finding->Fix(language)));
  }
  size_t listed = 0;
  for (const SettingDifference& one : report.settings) {
    if (one.incidental || one.alone || listed++ >= kMostListed) continue;
    out += Msg("warn  setting.{}: it differs, and no rule knows it\n", OneLine(one.key));
    for (const auto& [side, value, origin] :
         {std::tuple("target", one.target, one.target_origin), {"golden", one.golden, one.golden_origin}}) {
      out += value.empty() ? Msg("      {} does not set it\n", side)
                           : Msg("      {} {} ({})\n", side, OneLine(value), OriginMessage(OneLine(origin)));
    }
  }
  if (listed > kMostListed) out += Msg("... and {} settings more: see checklist.xlsx\n", listed - kMostListed);
  if (const AloneSettings alone = AloneOf(report.settings); alone.Any()) {
    out += Msg(
        "ask  settings.one_side: these are given at one side only, and what the other takes for them is not known\n");
    for (const auto& [side, values] : {std::pair("target", alone.target), {"golden", alone.golden}}) {
      if (!values.empty()) out += Message(fmt::format("      {} {}\n", side, OneLine(values)));
    }
  }
  if (!asked.empty()) out += Msg("ask a person: {}\n", asked);
  if (!report.not_compared.empty()) {
    out += Msg("cannot say: {}: a side of no known stack does not say its unit\n",
               fmt::format("{}", fmt::join(report.not_compared, ", ")));
  }
  for (const std::string& file : report.not_read) {
    out += Msg("cannot say: {} is not here, and may set what any rule looks at\n", file);
  }
  out += Msg("{} pass, {} not seen, {} to ask, {} warn, {} fail\n", report.Count(CheckVerdict::kPass),
             report.Count(CheckVerdict::kUnseen), report.Count(CheckVerdict::kAsk), report.Count(CheckVerdict::kWarn),
             report.Count(CheckVerdict::kFail));
  for (const std::string& file : report.files) out += Msg("  result: {}\n", OneLine(file));
  return out;
}

}  // namespace msprobe
