// msprobe config_check: the settings of a run packed, and those of two runs compared.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>

#include "base/file.h"
#include "base/language.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "jobs/ckpt_similarity.h"
#include "jobs/configuration/checkpoint_settings.h"
#include "jobs/configuration/config_pack.h"
#include "jobs/configuration/rl_settings.h"
#include "jobs/configuration/run_checklist.h"
#include "json/writer.h"

namespace msprobe {
namespace {

struct ConfigCheckArguments {
  std::vector<std::string> dump, compare, verl_compare, verl_verify, slime_compare, target, golden, runs;
  std::string output;
};

void PrintConfigWarnings(const std::vector<Message>& warnings) {
  for (const Message& warning : warnings) PrintWarning(warning);
}

Status RunPack(const ConfigCheckArguments& given, bool as_json) {
  const std::string output = given.output.empty() ? "./config_check_pack.zip" : given.output;
  std::vector<std::string> files = given.dump;
  std::erase(files, "");  // what -d without files leaves there
  MSP_ASSIGN_OR_RETURN(const PackReport report, CollectPack(files, output));
  PrintConfigWarnings(report.warnings);
  if (!as_json) {
    PrintForPeople(
        Msg("packed: {}\n  result: {}\n", fmt::format("{}", fmt::join(report.parts, ", ")), OneLine(report.path)));
    return OkStatus();
  }
  JsonWriter json;
  json.BeginObject();
  json.Member("file", report.path);
  json.Member("parts", report.parts);
  json.Member("warnings", report.warnings);
  json.EndObject();
  PrintJson(json.Take() + "\n");
  return OkStatus();
}

/// Two directories are checkpoints.
Status RunSimilarity(const ConfigCheckArguments& given, bool as_json) {
  const std::string output = given.output.empty() ? "./ckpt_similarity.json" : given.output;
  MSP_ASSIGN_OR_RETURN(const SimilarityReport report,
                       WriteCheckpointSimilarity(given.compare[0], given.compare[1], output));
  if (as_json) {
    JsonWriter json;
    json.BeginObject();
    json.Member("file", output);
    json.Member("compared", report.compared);
    json.Member("only_a", report.only_a);
    json.Member("only_b", report.only_b);
    json.EndObject();
    PrintJson(json.Take() + "\n");
    return OkStatus();
  }
  for (const std::string& name : report.only_a) PrintWarning(Msg("{} is in the first checkpoint only", OneLine(name)));
  for (const std::string& name : report.only_b) PrintWarning(Msg("{} is in the second checkpoint only", OneLine(name)));
  PrintForPeople(Msg("{} parameters compared\n  result: {}\n", report.compared, OneLine(output)));
  return OkStatus();
}

Status RunCompare(const ConfigCheckArguments& given, bool as_json, bool older) {
  const std::string output = given.output.empty() ? "./config_check_result" : given.output;
  const bool first = IsDirectory(given.compare[0]), second = IsDirectory(given.compare[1]);
  if (first && second) return RunSimilarity(given, as_json);
  if (first || second) {
    return UsageError(
        Msg("{} is a directory and the other is not: config_check -c compares two zip files of 'msprobe config_check "
            "-d', or two checkpoints",
            OneLine(given.compare[first ? 0 : 1])));
  }
  MSP_ASSIGN_OR_RETURN(const PackComparison result,
                       ComparePackFiles(given.compare[0], given.compare[1], output, older));
  PrintConfigWarnings(result.warnings);
  if (as_json) {
    JsonWriter json;
    json.BeginObject();
    json.Member("file", result.path);
    json.Member("html", result.page);
    json.ObjectMember("parts", [&] {
      for (const PackPart& part : result.parts) json.Member(part.sheet.name, NameOf(part.verdict));
    });
    json.Member("warnings", result.warnings);
    json.EndObject();
    PrintJson(json.Take() + "\n");
    return OkStatus();
  }
  Message text;
  for (const PackPart& part : result.parts) {
    text += Message(fmt::format("{}: {}, {} rows\n", part.sheet.name, NameOf(part.verdict), part.sheet.rows.size()));
  }
  if (result.parts.empty()) text = Msg("the two packs have no part in common\n");
  for (const std::string& file : {result.path, result.page}) {
    if (!file.empty()) text += Msg("  result: {}\n", OneLine(file));
  }
  PrintForPeople(text);
  return OkStatus();
}

Status PrintRlReport(const StatusOr<RlReport>& report, bool as_json) {
  if (!report.ok()) return report.status();
  if (as_json) {
    JsonWriter json;
    json.BeginObject();
    json.Member("files", report->files);
    json.Member("settings", report->rows);
    json.Member("different", report->different);
    json.EndObject();
    PrintJson(json.Take() + "\n");
    return OkStatus();
  }
  PrintForPeople(
      Msg("{} of {} settings differ\n  result: {}\n", report->different, report->rows, OneLine(report->files.back())));
  return OkStatus();
}

Status RunRules(const ConfigCheckArguments& given, const CommandContext& context) {
  const bool as_json = context.json;
  const Language language = as_json ? Language::kEnglish : LocaleLanguage();
  MSP_ASSIGN_OR_RETURN(const ChecklistReport report,
                       RunChecklistOfFiles(given.target, given.golden, given.output, language));
  PrintConfigWarnings(report.warnings);
  as_json ? PrintJson(ChecklistJson(report)) : PrintForPeople(ChecklistText(report, language));
  if (report.Undecided()) {
    if (!report.not_known.empty()) {
      return {Code::kUndecided, Msg("not decided: {} is of no stack that is known", OneLine(report.not_known[0]))};
    }
    if (!report.not_read.empty()) {
      return {Code::kUndecided,
              Msg("not decided: {} is not here, and may set what any rule looks at", report.not_read[0])};
    }
    return {Code::kUndecided,
            Msg("not decided: {} rules could not be compared, as a side of no known stack does not say the unit",
                report.not_compared.size())};
  }
  return StatusOf(
      Conclude(JudgementsOf(report, language)), context.fail_on, {FailOn::kBug, false},
      Msg("{} rules of the checklist fail: set what they name, then compare again", report.Count(CheckVerdict::kFail)));
}

Status RunConfigCheck(const CLI::App& command, const ConfigCheckArguments& given, const CommandContext& context) {
  const bool as_json = context.json, older = !context.framework.empty();
  const auto or_default = [&](const char* name) { return given.output.empty() ? std::string(name) : given.output; };
  if (command.count("--dump") > 0) return RunPack(given, as_json);
  if (given.runs.size() == 1) {
    return UsageError(Msg("config_check compares two runs: msprobe config_check {} REFERENCE", OneLine(given.runs[0])));
  }
  if (!given.target.empty()) return RunRules(given, context);
  if (!given.golden.empty())
    return UsageError(Msg("config_check -gp needs the run under test, -tp: see 'msprobe config_check --help'"));
  if (std::ranges::all_of(given.compare, HoldsConfigurationOnly) && !given.compare.empty()) {
    ConfigCheckArguments sides = given;  // the reference first, as with zip files
    sides.golden = {given.compare[0]};
    sides.target = {given.compare[1]};
    return RunRules(sides, context);
  }
  if (!given.compare.empty()) return RunCompare(given, as_json, older);
  if (!given.verl_compare.empty()) {
    return PrintRlReport(
        CompareVerlLogs(given.verl_compare[0], given.verl_compare[1], or_default("./verl_param_compare_result")),
        as_json);
  }
  if (!given.slime_compare.empty()) {
    return PrintRlReport(
        CompareSlimeLogs(given.slime_compare[0], given.slime_compare[1], or_default("./slime_param_compare_result")),
        as_json);
  }
  if (!given.verl_verify.empty()) {
    const bool named = given.verl_verify.size() == 2;
    return PrintRlReport(VerifyVerlLog(named ? given.verl_verify[0] : "", given.verl_verify.back(),
                                       or_default("./verl_param_verify_result")),
                         as_json);
  }
  return UsageError(
      Msg("config_check needs one of -d [FILE...], -c ZIP ZIP, -tp FILE... [-gp FILE...], -vc LOG LOG, -vv [YAML] LOG, "
          "-sc LOG LOG: see 'msprobe config_check --help'"));
}

}  // namespace

void RegisterConfigCheck(CLI::App& app, CommandContext* context) {
  auto given = std::make_shared<ConfigCheckArguments>();
  CLI::App* command = app.add_subcommand("config_check", "pack the settings of a run, and compare those of two runs");
  std::vector<CLI::Option*> actions = {
      command
          ->add_option("-d,--dump", given->dump,
                       "pack environment variables, packages, and the settings in these scripts, yaml and json files "
                       "and logs into a zip file")
          ->expected(0, -1),
      command->add_option("-c,--compare", given->compare, "compare two such zip files, the reference first")
          ->expected(2),
      command
          ->add_option("--verl-compare", given->verl_compare,
                       "-vc: compare the settings in two logs of verl, the reference last")
          ->expected(2),
      command
          ->add_option("--verl-verify", given->verl_verify,
                       "-vv: check the settings in a log of verl against a yaml file, or without one against those "
                       "that training and inference need to agree")
          ->expected(1, 2),
      command->add_option("--slime-compare", given->slime_compare, "-sc: as -vc for slime")->expected(2),
      command->add_option("--target_path", given->target,
                          "-tp: check what these scripts, yaml and json files, logs and zip files of one run set, with "
                          "the defaults of the frameworks, by the rules of the checklist")};
  for (size_t i = 0; i < actions.size(); ++i) {
    for (size_t k = i + 1; k < actions.size(); ++k) actions[i]->excludes(actions[k]);
  }
  command->add_option("--golden_path", given->golden, "-gp: the same for the reference run");
  command->add_option("-o,--output", given->output,
                      "zip file of -d, else directory of the results (default: config_check_pack.zip, "
                      "config_check_result, ... in the current directory)");
  command->add_flag("--json", context->json, "print the summary as one JSON object");
  AddFailOn(command, context);
  // As -tp RUN -gp REFERENCE.
  CLI::Option* runs = command->add_option("runs", given->runs, "run under test and reference: as -tp RUN -gp REFERENCE")
                          ->expected(0, 2);
  for (CLI::Option* action : actions) runs->excludes(action);
  command->callback([given, command, context] {
    if (given->runs.size() == 2) given->target = {given->runs[0]}, given->golden = {given->runs[1]};
    context->status = RunConfigCheck(*command, *given, *context);
  });
}

}  // namespace msprobe
