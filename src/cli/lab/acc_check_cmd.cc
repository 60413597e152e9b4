// msprobe acc_check and multi_acc_check: the functions of a dump called again, on a device and in float64.
#include <fmt/format.h>
#include <malloc.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "cli/lab/lab_options.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"
#include "lab/acc_check.h"
#include "lab/check_tables.h"
#include "lab/online/online_check.h"
#include "report/check_page.h"

namespace msprobe {
namespace {

constexpr int kMostProcesses = 64, kUsualProcesses = 8;
constexpr size_t kNamedErrors = 10;

struct AccCheckArgs {
  AccCheckSettings check;
  OnlineSettings online;
  std::string place;  // of --online
};

/// What tables say, as members of the open object.
void WriteCounts(const AccCheckReport& report, JsonWriter* out) {
  JsonWriter& json = *out;
  if (!report.error_data.empty()) json.Member("error_data", report.error_data);
  json.Member("device", report.device);
  json.Member("passed", report.passed);
  json.Member("warned", report.warned);
  json.Member("failed", report.failed);
  json.Member("skipped", report.skipped);
  json.Member("resumed", report.resumed);
  json.Member("errors", report.errors);
  json.ObjectMember("verdicts", [&] {
    for (size_t i = 0; i < report.verdicts.size(); ++i)
      json.Member(Float64VerdictText(static_cast<Float64Verdict>(i)), report.verdicts[i]);
  });
  json.Member("suspects", report.suspects);
  json.Member("known", report.known);
  json.Key("worst"), json.BeginArray();
  for (const WorstCall& call : report.worst) {
    json.BeginObject();
    json.Member("name", call.full);
    json.Member("verdict", Float64VerdictText(call.verdict));
    json.Key("times"), json.Number(call.times);
    json.EndObject();
  }
  json.EndArray();
}

/// Of the comparison with float64, and of the standard's verdicts.
std::vector<Judgement> JudgementsOf(const AccCheckReport& report) {
  constexpr std::array kKinds{JudgementKind::kBitEqual, JudgementKind::kRoundOff, JudgementKind::kSuspicious,
                              JudgementKind::kBug};
  std::vector<Judgement> out;
  const auto add = [&](JudgementKind kind, const Message& evidence, const std::vector<std::string>& names) {
    Judgement& one = out.emplace_back();
    one.kind = kind;
    if (!names.empty()) one.about = Message(OneLine(names.front()));
    one.evidence.push_back(evidence);
  };
  for (size_t i = 0; i < kKinds.size(); ++i) {
    const uint64_t count = report.verdicts[i];
    if (count == 0) continue;
    const auto verdict = static_cast<Float64Verdict>(i);
    add(kKinds[i], Msg("{} calls are {} against float64", count, KnownText(Float64VerdictText(verdict))),
        verdict >= Float64Verdict::kSuspicious ? report.suspects : std::vector<std::string>());
  }
  if (report.failed > 0)
    add(JudgementKind::kSuspicious, Msg("{} calls fail by the standard", report.failed), report.errors);
  if (report.passed + report.warned + report.failed + report.skipped + report.resumed == 0) {
    add(JudgementKind::kNotSeen, Msg("no call was made"), {});
  }
  if (!report.truncated.empty()) add(JudgementKind::kNotSeen, report.truncated, {});
  return out;
}

std::string Json(const AccCheckReport& report, const std::string& page) {
  JsonWriter json;
  json.BeginObject();
  json.Member("result", report.result);
  json.Member("details", report.details);
  json.Member("float64", report.float64);
  if (!page.empty()) json.Member("page", page);
  WriteCounts(report, &json);
  WriteConclusion(Conclude(JudgementsOf(report)), &json);
  json.EndObject();
  return json.Take() + "\n";
}

std::string Json(const OnlineReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Member("results", report.results);
  json.Member("judged", report.judged);
  json.Member("sent", report.sent);
  json.Member("left", report.left);
  json.Member("steps_left_out", report.steps_left_out);
  WriteCounts(report.calls, &json);
  WriteConclusion(Conclude(JudgementsOf(report.calls)), &json);
  json.EndObject();
  return json.Take() + "\n";
}

Message CountsText(const AccCheckReport& report) {
  Message out = Msg("{} calls pass on {}, {} with a warning, {} fail, {} are skipped\n", report.passed, report.device,
                    report.warned, report.failed, report.skipped);
  if (report.resumed > 0) out += Msg("{} calls were checked before\n", report.resumed);
  for (size_t i = 0; i < report.errors.size() && i < kNamedErrors; ++i)
    out += Msg("  fails: {}\n", OneLine(report.errors[i]));
  out += Msg("against float64: {} right, {} round-off, {} suspicious, {} wrong\n", report.verdicts[0],
             report.verdicts[1], report.verdicts[2], report.verdicts[3]);
  if (report.known > 0) out += Msg("  {} of them from kernels that are known to be inaccurate\n", report.known);
  for (size_t i = 0; i < report.suspects.size() && i < kNamedErrors; ++i)
    out += Msg("  further away than rounding explains: {}\n", OneLine(report.suspects[i]));
  return out;
}

Message Text(const AccCheckReport& report, const std::string& page) {
  Message out = CountsText(report);
  out += Msg("  result: {}\n  details: {}\n", OneLine(report.result), OneLine(report.details));
  out += Message("  float64: " + OneLine(report.float64) + "\n");
  if (!page.empty()) out += Msg("  page: {}\n", OneLine(page));
  if (!report.error_data.empty()) out += Msg("  data of calls that fail: {}\n", OneLine(report.error_data));
  return out;
}

Message Text(const OnlineReport& report, const std::string& output) {
  Message out = Msg("{} calls were judged; the trainings sent {}\n", report.judged, report.sent);
  if (report.left > 0) out += Msg("{} calls were not sent before their training ended\n", report.left);
  if (report.steps_left_out > 0)
    out += Msg("{} steps were not recorded: the queue of their training was full\n", report.steps_left_out);
  out += CountsText(report.calls);
  out += Msg("  tables of {} steps and ranks: {}\n", report.results.size(), OneLine(output));
  return out;
}

Status RunOnline(const AccCheckArgs& args, const CommandContext& context) {
  const auto tell = [](const Message& text, bool warning) {
    warning ? PrintWarning(text) : PrintMessage("[msprobe] ", text);
  };
  MSP_ASSIGN_OR_RETURN(const OnlineReport report, CheckOnline(args.online, args.check, tell));
  context.json ? PrintJson(Json(report)) : PrintForPeople(Text(report, args.check.output));
  return StatusOf(Conclude(JudgementsOf(report.calls)), context.fail_on, {});
}

/// Numbers of one result after the other come and go: their memory is kept, not fetched from the kernel and wiped each
/// time.
void KeepFreedMemory() {
#ifdef __GLIBC__
  constexpr int kMostKept = 256 << 20;
  mallopt(M_MMAP_THRESHOLD, kMostKept / 4);
  mallopt(M_TRIM_THRESHOLD, kMostKept);
#endif
}

Status Run(AccCheckArgs* args, const CommandContext& context) {
  KeepFreedMemory();
  const AccCheckSettings& settings = args->check;
  bool online = !args->place.empty();
  if (!settings.config.empty()) {
    MSP_ASSIGN_OR_RETURN(const bool configured, ReadOnlineConfig(settings.config, &args->online));
    online = online || (configured && settings.dump.empty());
  }
  if (!args->place.empty()) MSP_RETURN_IF_ERROR(ReadOnlinePlace(args->place, &args->online));
  if (online && settings.dump.empty()) return RunOnline(*args, context);
  if (online) return UsageError(Msg("--online judges what trainings send: leave out -api_info"));
  if (settings.dump.empty())
    return UsageError(Msg("-api_info is missing: the dump.json whose calls are made again, or --online HOST:PORT"));
  MSP_ASSIGN_OR_RETURN(const AccCheckReport report, CheckAccuracy(settings, nullptr));
  if (!report.truncated.empty()) PrintWarning(report.truncated);
  std::string page = JoinPath(DirName(report.float64), CheckPageName(report.float64));
  MSP_ASSIGN_OR_RETURN(const bool made, WriteCheckPage(report.float64, page));
  if (!made) page.clear();
  context.json ? PrintJson(Json(report, page)) : PrintForPeople(Text(report, page));
  return StatusOf(Conclude(JudgementsOf(report)), context.fail_on, {});
}

void AddOptions(CLI::App* command, const std::shared_ptr<AccCheckArgs>& args, CommandContext* context) {
  AccCheckSettings* settings = &args->check;
  command->add_option("--api_info_file,dump", settings->dump, "-api_info: dump.json of level L1 or mix");
  command->add_option("--online", args->place,
                      "HOST:PORT or a shared directory: judge what trainings send, while they run");
  command->add_option("--tls_path", args->online.tls,
                      "of --online HOST:PORT: directory of server.key, server.crt and ca.crt");
  command->add_option("--token_path", args->online.token,
                      "of --online HOST:PORT: file of the token that trainings say");
  command->add_option("--rank_list", args->online.ranks, "of --online: ranks that send; it ends when all of them have");
  command->add_option("-o,--out_path", settings->output, "directory of the two tables")->capture_default_str();
  command->add_flag("--save_error_data", settings->save_error_data,
                    "-save_error_data: keep the tensors of calls that do not pass");
  command->add_flag("-j,--jit_compile", settings->jit, "of an NPU: without effect, kernels are called as they are");
  command
      ->add_option("-d,--device", settings->devices,
                   "numbers of accelerators, or devices of torch such as cpu and cuda:1; the CPU where there is no "
                   "accelerator. recorded: judge the results of the dump itself")
      ->expected(1, 8)
      ->capture_default_str();
  command->add_option("--result_csv_path", settings->resume,
                      "-csv_path: accuracy_checking_result_*.csv of a check that was interrupted, to go on with it");
  command->add_flag("-f,--filter_api", settings->once,
                    "of calls with the same shapes and settings check only the first");
  command->add_option("--config-path", settings->config,
                      "-config: config.json whose section acc_check has white_list, black_list, error_data_path");
  AddStandardsOption(command, &settings->release);
  command->add_flag("--json", context->json, "print the summary as one JSON object");
  AddFailOn(command, context);
  command->callback([args, context] { context->status = Run(args.get(), *context); });
}

}  // namespace

void RegisterAccCheck(CLI::App& app, CommandContext* context) {
  auto one = std::make_shared<AccCheckArgs>();
  AddOptions(app.add_subcommand("acc_check",
                                "call the functions of a dump again, on a device and in float64, and say "
                                "which are inaccurate"),
             one, context);
}

void RegisterMultiAccCheck(CLI::App& app, CommandContext* context) {
  auto many = std::make_shared<AccCheckArgs>();
  CLI::App* multi = app.add_subcommand("multi_acc_check", "acc_check in several processes");
  AddOptions(multi, many, context);
  many->check.processes = kUsualProcesses;
  multi->add_option("-n,--num_splits", many->check.processes, "processes")
      ->check(CLI::Range(1, kMostProcesses))
      ->capture_default_str();
}

}  // namespace msprobe
