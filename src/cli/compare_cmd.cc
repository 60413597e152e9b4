// msprobe compare
#include <fmt/core.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/commands.h"
#include "cli/context/fail_on.h"
#include "cli/context/output_options.h"
#include "cli/context/register_commands.h"
#include "compare/values/thresholds.h"
#include "diagnose/story/story_judgement.h"
#include "import/kernel_dump.h"
#include "jobs/atb_compare.h"
#include "jobs/kernel_compare.h"
#include "jobs/run_compare.h"
#include "json/parser.h"
#include "json/writer.h"

namespace msprobe {
namespace {

constexpr size_t kReplays = 50;  // of --replay without a number

struct CompareArguments {
  CompareSettings request;
  std::string mode = "auto";
  std::string compare_json, print_template;
  bool plan = false;
  bool print_thresholds = false;
  bool compare_only = false;  // the older command form without its advisor
  bool log = false;
  bool newer_columns = false;  // with -i: those of -tp and -gp; for the Python functions
  bool stack_mode = false;     // of the older form, which has no column of stacks without it
  std::string rank, step;      // of kernel dumps: "0,1"
  KernelSettings kernels;      // what these, or compare.json, choose
};

/// An option of the old tool whose work this version does not do: known, so that the error can say so.
struct Refused {
  const char* names;
  int min, max;  // values
  const char *shown, *mode;
};
constexpr std::array kRefused{
    Refused{"--fusion_rule_file", 1, 1, "-fr/--fusion_rule_file", "offline_data"},
    Refused{"--quant_fusion_rule_file", 1, 1, "-qfr/--quant_fusion_rule_file", "offline_data"},
    Refused{"--close_fusion_rule_file", 1, 1, "-cfr/--close_fusion_rule_file", "offline_data"},
    Refused{"--input_data", 1, 1, "--input_data", "offline_model"},
    Refused{"--input_shape", 1, 1, "--input_shape", "offline_model"},
    Refused{"--output_size", 1, 1, "--output_size", "offline_model"},
    Refused{"--dym_shape_range", 1, 1, "--dym_shape_range", "offline_model"},
    Refused{"--onnx_fusion_switch", 1, 1, "-ofs/--onnx_fusion_switch", "offline_model"},
};

/// An option whose file may be left out when `least` is 0.
void AddMapping(CLI::App* command, const std::string& name, const std::string& help, std::optional<std::string>* to,
                int least) {
  command
      ->add_option_function<std::vector<std::string>>(
          name, [to](const std::vector<std::string>& files) { *to = files.empty() ? "" : files.front(); }, help)
      ->expected(least, 1)
      ->option_text("FILE");
}

/// One text member of compare.json; "" when absent.
StatusOr<std::string> TextMember(const JsonValue& doc, const std::string& path, std::string_view key) {
  const JsonValue* v = doc.Find(key);
  if (!v || v->IsNull()) return std::string();
  if (!v->IsString()) return BadInput(Msg("{}: \"{}\" must be a string, a path", path, key));
  return std::string(v->Text());
}

/// A list of numbers of compare.json, or one number.
Status NumberMember(const JsonValue& doc, const std::string& path, std::string_view key, std::vector<int>* out) {
  const JsonValue* v = doc.Find(key);
  if (!v || v->IsNull()) return OkStatus();
  const auto add = [&](const JsonValue& n) -> Status {
    if (!n.IsInt32() || n.Int32() < 0) {
      return BadInput(Msg("{}: \"{}\" must be a list of numbers such as [0, 1]", path, key));
    }
    out->push_back(n.Int32());
    return OkStatus();
  };
  if (!v->IsArray()) return add(*v);
  for (const JsonValue& n : v->Items()) MSP_RETURN_IF_ERROR(add(n));
  return OkStatus();
}

/// {"npu_path": .., "bench_path": ..}, or the names that the Python function uses.
Status ReadCompareJson(const std::string& path, CompareSettings* request, KernelSettings* kernels, bool* log) {
  MSP_ASSIGN_OR_RETURN(const MappedFile file, MappedFile::Open(path));
  JsonDoc doc;
  MSP_RETURN_IF_ERROR(ParseJson(file.text(), path, &doc));
  for (const char* key : {"npu_path", "npu_json_path"}) {
    if (request->target.empty()) {
      MSP_ASSIGN_OR_RETURN(request->target, TextMember(doc, path, key));
    }
  }
  for (const char* key : {"bench_path", "bench_json_path"}) {
    if (request->golden.empty()) {
      MSP_ASSIGN_OR_RETURN(request->golden, TextMember(doc, path, key));
    }
  }
  for (const char* key : {"stack_path", "stack_json_path"}) {
    if (request->stack_file.empty()) {
      MSP_ASSIGN_OR_RETURN(request->stack_file, TextMember(doc, path, key));
    }
  }
  if (LooksLikeKernels(request->target)) {
    MSP_RETURN_IF_ERROR(NumberMember(doc, path, "rank_id", &kernels->ranks));
    MSP_RETURN_IF_ERROR(NumberMember(doc, path, "step_id", &kernels->steps));
  }
  const JsonValue* print = doc.Find("is_print_compare_log");
  *log = *log || (print && print->Bool());
  if (!request->target.empty() && !request->golden.empty()) return OkStatus();
  return BadInput(Msg("{} must hold \"npu_path\" and \"bench_path\": add the two paths", path));
}

Status CheckArguments(CompareArguments* args, const CommandContext& context, bool input_json) {
  if (args->mode != "auto") {
    return UsageError(
        Msg("-m {} needs CANN (Ascend's toolkit), which msprobe does not use: leave -m out to compare dumps of modules "
            "and functions, or use -m atb for those of ATB",
            args->mode));
  }
  if (input_json) {
    MSP_RETURN_IF_ERROR(ReadCompareJson(args->compare_json, &args->request, &args->kernels, &args->log));
    args->request.advisor = !args->compare_only;
    // The older form writes workbooks only.
    args->request.xlsx = true;
    args->request.older_columns = !args->newer_columns;
    // Release 8.1.1, which takes MindSpore's dumps in this form, always shows stacks, and no requires_grad.
    args->request.without_grads = args->request.older_columns && context.framework == "mindspore";
    args->request.stacks = args->stack_mode || args->request.without_grads;
    if (!args->request.stacks) args->request.stack_file.clear();
  }
  args->request.xlsx = args->request.xlsx || args->request.highlight;
  if (args->request.plain && args->request.ruler) {
    return UsageError(
        Msg("--ruler adds columns that --plain (or MSPROBE_PLAIN in the environment) leaves out: give one of the two"));
  }
  args->request.verdicts = !args->request.plain && !input_json;
  if (!args->request.target.empty() && args->request.golden.empty()) {
    return UsageError(
        Msg("compare needs the reference run, too: msprobe compare {0} REFERENCE. One run by itself: msprobe "
            "overflow_check {0}",
            OneLine(args->request.target)));
  }
  if (args->request.target.empty() || args->request.golden.empty()) {
    return UsageError(
        Msg("compare needs -tp TARGET and -gp GOLDEN (or -i compare.json): see 'msprobe compare --help'"));
  }
  return OkStatus();
}

/// A line on the terminal that is written over; nothing when stderr is a file.
class ProgressLine {
 public:
  void Show(const std::string& label, double share) {
    const int percent = static_cast<int>(share * 100);
    if (!tty_ || percent == last_) return;
    last_ = percent;
    const std::string line = fmt::format("\r{}{}{} %", OneLine(label), label.empty() ? "" : ": ", percent);
    std::fputs(line.c_str(), stderr);
    std::fflush(stderr);
  }
  ~ProgressLine() { Clear(); }
  void Clear() {
    if (last_ >= 0) std::fputs("\r\033[K", stderr);
    last_ = -1;
  }

 private:
  const bool tty_ = isatty(STDERR_FILENO) != 0;
  int last_ = -1;
};

StatusOr<CompareReport> RunWithProgress(CompareSettings request, bool early) {
  ProgressLine line;
  request.progress = [&](const std::string& label, double share) { line.Show(label, share); };
  if (early) {
    request.glance = [&](const std::string& label, const Message& text) {
      line.Clear();
      PrintForPeople(label.empty() ? Msg("{}\n", text) : Msg("{}: {}\n", OneLine(label), text));
      std::fflush(stdout);
    };
    request.before = [&](const Message& text) {
      line.Clear();
      PrintForPeople(text);
      std::fflush(stdout);
    };
    request.early = [&](const std::string& label, const Message& difference) {
      line.Clear();
      PrintForPeople(label.empty() ? Msg("first difference so far: {}\n", difference)
                                   : Msg("first difference so far, {}: {}\n", OneLine(label), difference));
      std::fflush(stdout);
    };
  }
  return RunCompare(request);
}

/// Options that another kind of dump does not take are named, as they would have no effect.
Status CheckOptions(const CLI::App& command, std::initializer_list<std::string_view> taken, const char* kind) {
  for (const CLI::Option* option : command.get_options()) {
    const std::vector<std::string>& names = option->get_lnames();  // get_name() leaves out what help does not show
    const std::string name = names.empty() ? option->get_name() : "--" + names.front();
    if (option->count() == 0 || std::find(taken.begin(), taken.end(), name) != taken.end()) continue;
    return UsageError(Msg("{} does not apply {}: remove it", name, KnownText(kind)));
  }
  return OkStatus();
}

/// "0,1" as numbers.
Status ReadNumbers(const char* option, std::string_view text, std::vector<int>* out) {
  constexpr size_t kMostDigits = 9;
  for (size_t at = 0; !text.empty() && at <= text.size();) {
    const size_t end = std::min(text.find(',', at), text.size());
    std::string part(text.substr(at, end - at));
    std::erase(part, ' ');
    if (!IsDigits(part) || part.size() > kMostDigits) {
      return UsageError(Msg("{} takes numbers, such as {} 0,1: '{}' is not one", option, option, OneLine(text)));
    }
    out->push_back(std::atoi(part.c_str()));
    at = end + 1;
  }
  return OkStatus();
}

Status RunKernels(CompareArguments& args, const CLI::App& command, bool json) {
  MSP_RETURN_IF_ERROR(
      CheckOptions(command,
                   {"--mode", "--target_path", "--golden_path", "--output_path", "--json", "--plain", "--xlsx",
                    "--rank", "--step", "--input_path", "--compare_only", "--stack_mode", "--newer_columns"},
                   "to kernel dumps, which take -tp, -gp, -o, --rank, --step and --xlsx"));
  KernelSettings& settings = args.kernels;
  settings.target = args.request.target;
  settings.golden = args.request.golden;
  settings.output = args.request.output;
  settings.xlsx = args.request.xlsx;
  settings.plain = args.request.plain;
  MSP_RETURN_IF_ERROR(ReadNumbers("--rank", args.rank, &settings.ranks));
  MSP_RETURN_IF_ERROR(ReadNumbers("--step", args.step, &settings.steps));
  MSP_ASSIGN_OR_RETURN(const KernelReport report, CompareKernels(settings));
  for (const Message& warning : report.warnings) PrintWarning(warning);
  json ? PrintJson(KernelReportJson(report)) : PrintForPeople(KernelReportText(report));
  if (report.failures.empty()) return OkStatus();
  const auto& [label, status] = report.failures.front();
  return {status.code(), Msg("{} of {} pairs could not be compared, the first is {}: {}", report.failures.size(),
                             report.failures.size() + report.tables.size(), label, status.text())};
}

/// Of a kernel dump --rank and --step may be left out where its directories say what it is.
bool AreKernels(const CompareArguments& args) {
  if (!args.rank.empty() || !args.step.empty()) return true;
  return LooksLikeKernels(args.request.target) && LooksLikeKernels(args.request.golden);
}

Status Run(CompareArguments args, const CommandContext& context, const CLI::App& command, bool input_json) {
  if (args.request.mapping.layer_template == "list" || !args.print_template.empty()) {
    return PrintLayerTemplates(args.print_template, context.json);
  }
  if (args.print_thresholds) {
    const std::string yaml = ThresholdsYaml(DefaultThresholds());
    std::fwrite(yaml.data(), 1, yaml.size(), stdout);
    return OkStatus();
  }
  MSP_RETURN_IF_ERROR(CheckArguments(&args, context, input_json));
  if (AreKernels(args)) return RunKernels(args, command, context.json);
  if (args.plan) {
    MSP_ASSIGN_OR_RETURN(const std::string plan, PlanCompare(args.request));
    std::fwrite(plan.data(), 1, plan.size(), stdout);
    std::fputc('\n', stdout);
    return OkStatus();
  }
  if (args.log) {
    FILE* to = context.json ? stderr : stdout;  // stdout holds the summary then, for programs
    args.request.log = [to](const std::string& lines) { std::fwrite(lines.data(), 1, lines.size(), to); };
  }
  MSP_ASSIGN_OR_RETURN(const CompareReport report, RunWithProgress(args.request, !context.json));
  for (const PairReport& pair : report.pairs) {
    for (const Message& warning : pair.warnings) PrintWarning(warning);
  }
  context.json ? PrintJson(SummaryJson(report) + "\n") : PrintForPeople(SummaryText(report));
  if (report.failures.empty()) {
    MSP_RETURN_IF_ERROR(StatusOf(Conclude(JudgementsOf(report.story, LanguageFor(context))), context.fail_on, {}));
    return report.story.whole() ? OkStatus() : NotWhole();
  }
  const auto& [label, status] = report.failures.front();
  return {status.code(), Msg("{} of {} pairs could not be compared, the first is {}: {}", report.failures.size(),
                             report.failures.size() + report.pairs.size(), label, status.text())};
}

Status RunAtb(const CompareSettings& request, bool json) {
  if (request.target.empty() || request.golden.empty()) {
    return UsageError(Msg("compare -m atb needs -tp TARGET and -gp GOLDEN, two directories that hold statistic.csv"));
  }
  MSP_ASSIGN_OR_RETURN(const AtbReport report, CompareAtb(request.target, request.golden, request.output));
  for (const Message& warning : report.warnings) PrintWarning(warning);
  if (json) {
    std::string text;
    JsonWriter line(&text);
    line.BeginObject();
    line.Member("file", report.path);
    line.Member("mode", report.tensors ? "atb_tensor" : "atb_stats");
    line.Member("rows", report.rows);
    line.Member("target_only", report.target_only);
    line.Member("golden_only", report.golden_only);
    line.Member("unread", report.unread);
    line.EndObject();
    PrintJson(text + "\n");
    return OkStatus();
  }
  const std::string path = OneLine(report.path);
  PrintForPeople(
      report.tensors
          ? Msg("compare (atb, tensor): {} tensors; {} only in the target, {} only in the golden run\n  result: {}\n",
                report.rows, report.target_only, report.golden_only, path)
          : Msg("compare (atb, statistics): {} tensors; {} only in the target, {} only in the golden run\n  result: "
                "{}\n",
                report.rows, report.target_only, report.golden_only, path));
  return OkStatus();
}

/// What is compared, and what is written.
void AddOutputs(CLI::App* command, CompareArguments* args, CommandContext* context) {
  CompareSettings& request = args->request;
  command->add_option("--target_path,target", request.target,
                      "-tp: dump.json, rank, step or dump directory of the run under test");
  command->add_option("--golden_path,golden", request.golden, "-gp: the same for the reference run");
  command->add_option("-o,--output_path", request.output, "directory of the results")->capture_default_str();
  command
      ->add_option_function<std::string>(
          "--rows", [&request](const std::string& rows) { request.differing = rows == "differing"; },
          "all: a table for each rank; differing: one table of the rows that are more than round-off and not inherited")
      ->check(CLI::IsMember({"all", "differing"}))
      ->default_str("all");
  AddOutputBound(command, &request.ranks, &request.out_limit);
  command->add_flag("--xlsx", request.xlsx, "write a workbook instead of csv");
  command->add_flag("--highlight", request.highlight, "-hl: a workbook with rows in red and yellow, and why");
  command->add_flag("--html", request.html, "also write one HTML report: opens from disk, to attach to an issue");
  command
      ->add_flag(
          "--plain", request.plain,
          "write the files and columns of mindstudio-probe and nothing else: no first_divergence.json, no verdicts")
      ->envname("MSPROBE_PLAIN");
  command->add_flag("-f,--fuzzy_match", request.mapping.fuzzy, "-fm: match ops in order, whatever their call numbers");
  command->add_option("--repro", request.repro,
                      "directory for a script that replays the op of the first difference with plain torch");
  command
      ->add_option_function<std::vector<std::string>>(
          "--replay",
          [&request](const std::vector<std::string>& n) {
            request.replay = n.empty() || n.front().empty() ? kReplays : std::strtoul(n.front().c_str(), nullptr, 10);
          },
          "tensor dumps: call ops again in float64 and say which side is closer to float64; N at most (50)")
      ->expected(0, 1)
      ->check(CLI::Range(1, 100000))
      ->option_text("[N]");
  command->add_flag("--diff_analyze", request.diff_analyze,
                    "-da: ops as JSON instead of a table, and the first that differ by mindstudio-probe's thresholds");
  command->add_flag("--json", context->json, "print the summary as one JSON object");
  AddFailOn(command, context);
  command->add_flag("--plan", args->plan, "print which files and ops would be compared, as JSON, and stop");
  command->add_flag("--structure", request.structure,
                    "compare models instead of values: calls that only one run has, or that moved or were renamed "
                    "(always for task structure)");
  command
      ->add_option(
          "--suggest_mapping,--suggest-mapping", request.suggest_mapping,
          "suggest a layer mapping (-lm) for modules that are named differently in the golden run; check it before use")
      ->option_text("FILE");
  command->add_flag("--unmatched", request.unmatched, "also write a table of the unmatched ops of both runs");
  command->add_option("-m,--mode", args->mode, "auto: dumps of a framework; atb: dumps of ATB; the others need CANN")
      ->check(CLI::IsMember({"auto", "offline_data", "torchair", "offline_model", "atb"}));
}

/// What belongs together.
void AddMappings(CLI::App* command, CompareArguments* args) {
  CompareSettings& request = args->request;
  AddMapping(command, "--cell_mapping", "-cm: YAML file, target module: golden module; the file may be omitted",
             &request.mapping.cell, 0);
  AddMapping(command, "--api_mapping",
             "-am: YAML file of functions of MindSpore and PyTorch that correspond, in addition to the built-in ones",
             &request.mapping.api, 0);
  AddMapping(command, "--data_mapping", "-dm: YAML file, target item: golden item", &request.mapping.data, 1);
  AddMapping(command, "--layer_mapping", "-lm: YAML file, class: {target child: golden child}", &request.mapping.layer,
             0);
  command->add_option("--template", request.mapping.layer_template,
                      "name of a built-in layer mapping; \"list\" prints the names");
  command->add_option("--print_template", args->print_template, "print a built-in layer mapping as YAML and stop");
  command->add_flag("--consistent_check", request.mapping.consistent_check,
                    "training (target) against inference (golden run), with --backend");
  command->add_option("--backend", request.mapping.backend, "framework that trained the target: fsdp or megatron")
      ->check(CLI::IsMember({"fsdp", "megatron"}));
}

/// How rows are judged, and the options of older command forms; returns -i.
CLI::Option* AddJudgement(CLI::App* command, CompareArguments* args) {
  CompareSettings& request = args->request;
  CLI::Option* input = command->add_option("-i,--input_path", args->compare_json, "compare.json of mindstudio-probe 8");
  command->add_option("--thresholds", request.thresholds, "YAML file of the thresholds for judging rows");
  command->add_flag("--print_thresholds", args->print_thresholds, "print such a file with the defaults and stop");
  command->add_flag("--ruler", request.ruler,
                    "also in csv: columns with the difference in units of what rounding explains, and a verdict");
  command->add_option("--calibrate", request.calibrate,
                      "dump of a second golden run: differences between the two golden runs are treated as noise");
  command->add_option("--custom_metric", request.custom_metric,
                      "Python file (or directory of alg_*.py) whose metric becomes a column of tensor tables");
  command
      ->add_option("--config", request.postprocess,
                   "tensor dumps: YAML file of matrices to multiply tensors by before comparing them")
      ->option_text("FILE");
  command->add_option("--rank", args->rank, "kernel dumps of MindSpore: only these ranks, such as 0,1")
      ->option_text("N,N");
  command->add_option("--step", args->step, "kernel dumps of MindSpore: only these steps, such as 0,1")
      ->option_text("N,N");
  command->add_flag("--is_print_compare_log", args->log, "-tensor_log: print a line for each row of tensor dumps");
  command->add_flag("-c,--compare_only", args->compare_only)->group("");
  command->add_flag("--newer_columns", args->newer_columns)->group("");
  command->add_flag("-s,--stack_mode", args->stack_mode, "with -i: add the column of call stacks");
  return input;
}

}  // namespace

void RegisterCompare(CLI::App& app, CommandContext* context) {
  CLI::App* command =
      app.add_subcommand("compare", "compare the dumps of two runs: a table, and the first op that differs");
  auto args = std::make_shared<CompareArguments>();
  args->request.output = "./output";
  AddOutputs(command, args.get(), context);
  AddMappings(command, args.get());
  CLI::Option* input = AddJudgement(command, args.get());
  auto refused = std::make_shared<std::vector<std::pair<CLI::Option*, Refused>>>();
  for (const Refused& r : kRefused) {
    CLI::Option* option =
        r.max == 0 ? command->add_flag(r.names) : command->add_option(r.names)->expected(r.min, r.max);
    option->group("");
    refused->emplace_back(option, r);
  }
  command->callback([args, context, command, input, refused] {
    if (args->mode == "atb") {
      context->status =
          CheckOptions(*command, {"--mode", "--target_path", "--golden_path", "--output_path", "--json", "--plain"},
                       "to -m atb, which takes -tp, -gp and -o");
      if (context->status.ok()) context->status = RunAtb(args->request, context->json);
      return;
    }
    for (const auto& [option, which] : *refused) {
      if (option->count() > 0) {
        const bool data = std::string_view(which.mode) == "offline_data";
        context->status = UsageError(data ? Msg("{} belongs to -m offline_data, which needs CANN", which.shown)
                                          : Msg("{} belongs to -m offline_model, which needs CANN", which.shown));
        return;
      }
    }
    context->status = Run(*args, *context, *command, input->count() > 0);
  });
}

}  // namespace msprobe
