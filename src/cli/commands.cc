#include "cli/commands.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "base/interrupt.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/temp_names.h"
#include "base/text.h"
#include "cli/earlier_commands.h"
#include "cli/lab/lab_commands.h"

namespace msprobe {
namespace {

// CLI11 reads "-tp" as "-t p"; the command line we are compatible with has many such options.
constexpr std::array<std::pair<std::string_view, std::string_view>, 25> kShort{{
    {"-tp", "--target_path"},
    {"-config", "--config-path"},
    {"-gp", "--golden_path"},
    {"-fm", "--fuzzy_match"},
    {"-cm", "--cell_mapping"},
    {"-am", "--api_mapping"},
    {"-dm", "--data_mapping"},
    {"-lm", "--layer_mapping"},
    {"-da", "--diff_analyze"},
    {"-oc", "--overflow_check"},
    {"-hl", "--highlight"},
    {"-fr", "--fusion_rule_file"},
    {"-qfr", "--quant_fusion_rule_file"},
    {"-cfr", "--close_fusion_rule_file"},
    {"-ofs", "--onnx_fusion_switch"},
    {"-tensor_log", "--is_print_compare_log"},
    {"-progress_log", "--is_print_progress_log"},
    {"-vc", "--verl-compare"},
    {"-vv", "--verl-verify"},
    {"-sc", "--slime-compare"},
    {"-npu", "--npu_csv_path"},
    {"-gpu", "--gpu_csv_path"},
    {"-api_info", "--api_info_file"},
    {"-csv_path", "--result_csv_path"},
    {"-save_error_data", "--save_error_data"},
}};

// The names that earlier releases gave to the same commands.
constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kOldNames{{{"graph", "graph_visualize"},
                                                                                  {"nan_analyze", "overflow_check"},
                                                                                  {"run_ut", "acc_check"},
                                                                                  {"multi_run_ut", "multi_acc_check"}}};

constexpr std::array<std::string_view, 29> kCommands{
    "compare",      "graph_visualize",  "serve",           "export",
    "run",          "estimate",         "certify",         "recover",
    "verify-dump",  "overflow_check",   "merge_result",    "data2db",
    "parse",        "code_mapping",     "config_check",    "ckpt",
    "curves",       "optimizer_replay", "doctor",          "preflight",
    "monitor",      "acc_check",        "multi_acc_check", "api_precision_compare",
    "lab",          "tolerance",        "op_generate",     "run_overflow_check",
    "check_kernels"};
// Those that run the user's program.
constexpr std::array<std::string_view, 5> kRunners{"run", "estimate", "certify", "monitor", "lab"};

/// A result file that got the number of a closed stderr would receive the error messages.
void OpenStandardStreams() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (fcntl(fd, F_GETFD) == -1 && errno == EBADF) (void)!open("/dev/null", O_RDWR);
  }
}

/// What was printed counts as a result, so a full disk behind stdout is an error; a reader that left is none.
Status FlushOutput() {
  const bool failed = std::ferror(stdout) != 0;
  errno = 0;
  if ((std::fflush(stdout) == 0 && !failed) || errno == EPIPE) return OkStatus();
  if (errno == 0) {
    return InternalError(Msg("cannot print the summary: redirect the output elsewhere; the results are written"));
  }
  return InternalError(Msg("cannot print the summary ({}): redirect the output elsewhere; the results are written",
                           KnownText(std::strerror(errno))));
}

int Report(Status status) {
  Status output = FlushOutput();
  if (status.ok()) status = std::move(output);
  if (!status.ok()) {
    const bool finding = status.code() == Code::kFindings || status.code() == Code::kUndecided;
    PrintMessage(finding ? "" : "[msprobe] error: ", status.text());
  }
  return static_cast<int>(status.code());
}

/// Position of the command's name, args.size() without one: the first argument that is not an option and no option's
/// value.
size_t FindCommand(const std::vector<std::string>& args) {
  for (size_t i = 0; i < args.size(); ++i) {
    if (args[i] == "-f" || args[i] == "--framework") {
      ++i;
    } else if (!StartsWith(args[i], "-")) {
      return i;
    }
  }
  return args.size();
}

/// Of "run OPTIONS -- PROGRAM ARGUMENTS" everything behind the first "--", which belongs to the program.
std::vector<std::string> TakeProgram(std::vector<std::string>* args) {
  const auto dashes = std::find(args->begin(), args->end(), "--");
  if (dashes == args->end()) return {};
  std::vector<std::string> program(dashes + 1, args->end());
  args->erase(dashes, args->end());
  return program;
}

Status UnknownCommand(const std::string& name) {
  if (const auto instead = InsteadOfEarlier(name)) {
    return UsageError(Msg("msprobe does not have the command {} of mindstudio-probe: {}", name, KnownText(*instead)));
  }
  return UsageError(
      Msg("unknown command '{}': use {}, see 'msprobe --help'", name, fmt::format("{}", fmt::join(kCommands, ", "))));
}

/// "A<middle>B" with what the user gave anywhere: the last `middle` is the program's.
bool SplitAtLast(std::string_view text, std::string_view middle, std::string* a, std::string* b) {
  const size_t at = text.rfind(middle);
  if (at == std::string_view::npos) return false;
  *a = text.substr(0, at);
  *b = text.substr(at + middle.size());
  return true;
}

/// What CLI11 says of wrong arguments.
Message WrongArguments(const CLI::ParseError& error) {
  const std::string text = error.what();
  std::string a, b, option, given;
  if (dynamic_cast<const CLI::ConversionError*>(&error) && text.starts_with("Could not convert: ")) {
    const size_t at = text.find(" = ");
    if (at != std::string::npos)
      return Msg("Could not convert: {} = {}", text.substr(19, at - 19), text.substr(at + 3));
  }
  if (dynamic_cast<const CLI::RequiredError*>(&error) && text.ends_with(" is required") && text[0] == '-') {
    return Msg("{} is required", text.substr(0, text.size() - 12));
  }
  if (dynamic_cast<const CLI::ExcludesError*>(&error) && SplitAtLast(text, " excludes ", &a, &b)) {
    return Msg("{} excludes {}", a, b);
  }
  if (dynamic_cast<const CLI::RequiresError*>(&error) && SplitAtLast(text, " requires ", &a, &b)) {
    return Msg("{} requires {}", a, b);
  }
  if (dynamic_cast<const CLI::ArgumentMismatch*>(&error) && text.ends_with(" missing") &&
      SplitAtLast(std::string_view(text).substr(0, text.size() - 8), " required ", &a, &b) &&
      SplitAtLast(a, ": ", &option, &given)) {
    return Msg("{}: {} required {} missing", option, given, b);
  }
  if (!dynamic_cast<const CLI::ValidationError*>(&error)) return KnownText(text);
  const size_t colon = text.find(": ");
  if (colon == std::string::npos) return KnownText(text);
  option = text.substr(0, colon), given = text.substr(colon + 2);
  if (given.starts_with("Value ") && SplitAtLast(given, " not in range ", &a, &b)) {
    std::string least, most;
    if (SplitAtLast(b, " to ", &least, &most))
      return Msg("{}: Value {} not in range {} to {}", option, a.substr(6), least, most);
    return Msg("{}: Value {} not in range {}", option, a.substr(6), b);
  }
  if (given.ends_with("}") && SplitAtLast(given, " not in {", &a, &b)) {
    b.pop_back();
    return Msg("{}: {} not in {{{}}}", option, a, b);
  }
  return Message(text);
}

Status UsageOf(const CLI::App& app, const CLI::ParseError& error) {
  Message text = WrongArguments(error);
  std::string help = "msprobe";
  for (const CLI::App* command : app.get_subcommands()) {
    help += " " + command->get_name();
    const std::vector<std::string> left = command->remaining();
    if (dynamic_cast<const CLI::ExtrasError*>(&error) && !left.empty()) {
      const std::string& name = command->get_name();
      const bool runs = name == "run" || name == "estimate" || name == "certify" || name == "monitor" || name == "lab";
      text = StartsWith(left[0], "-") ? Msg("unknown option {}", left[0])
             : runs                   ? Msg("unexpected argument {} (your command goes after '--')", left[0])
                                      : Msg("unexpected argument {}", left[0]);
    }
  }
  return UsageError(Msg("{}: see '{} --help'", text, help));
}

}  // namespace

std::vector<std::string> ExpandShortOptions(std::vector<std::string> args) {
  for (std::string& arg : args) {
    if (arg == "--") break;
    const size_t eq = arg.find('=');
    const std::string_view key = std::string_view(arg).substr(0, eq);
    for (const auto& [brief, full] : kShort) {
      if (key != brief) continue;
      arg = std::string(full) + (eq == std::string::npos ? "" : arg.substr(eq));
      break;
    }
  }
  return args;
}

int RunCommand(std::vector<std::string> args) {
  CommandContext context;
  CLI::App app{"msprobe: find where two runs of a model diverge, and where a single run goes wrong.", "msprobe"};
  app.set_version_flag("-V,--version", "msprobe " MSPROBE_VERSION);
  app.add_option("-f,--framework", context.framework,
                 "framework of the dumps; only needed by scripts written for mindstudio-probe, msprobe detects it")
      ->check(CLI::IsMember({"pytorch", "mindspore"}));
  app.require_subcommand(1);
  RegisterCompare(app, &context);
  RegisterGraphVisualize(app, &context);
  RegisterMergeResult(app, &context);
  RegisterData2Db(app, &context);
  RegisterServe(app, &context);
  RegisterExport(app, &context);
  RegisterRun(app, &context);
  RegisterEstimate(app, &context);
  RegisterCertify(app, &context);
  RegisterRecover(app, &context);
  RegisterVerifyDump(app, &context);
  RegisterOverflowCheck(app, &context);
  RegisterParse(app, &context);
  RegisterCodeMapping(app, &context);
  RegisterCkpt(app, &context);
  RegisterConfigCheck(app, &context);
  RegisterCurves(app, &context);
  RegisterOptimizerReplay(app, &context);
  RegisterDoctor(app, &context);
  RegisterMonitor(app, &context);
  RegisterAccCheck(app, &context);
  RegisterPrecisionCompare(app, &context);
  RegisterTolerance(app, &context);
  RegisterOpGenerate(app, &context);
  RegisterOverflowReplay(app, &context);
  RegisterLab(app, &context);
  RegisterCheckKernels(app, &context);
  app.footer("Run 'msprobe COMMAND --help' for the options of a command.");  // behind them: they would take it over

  bool becomes_program = false;
  args = ExpandShortOptions(std::move(args));
  if (const size_t at = FindCommand(args); at < args.size()) {
    for (const auto& [old_name, name] : kOldNames) {
      if (args[at] == old_name) args[at] = name;
    }
    if (std::find(kCommands.begin(), kCommands.end(), args[at]) == kCommands.end()) {
      return Report(UnknownCommand(args[at]));
    }
    if (std::find(kRunners.begin(), kRunners.end(), args[at]) != kRunners.end()) context.program = TakeProgram(&args);
    becomes_program = args[at] == "run" || (args[at] == "monitor" && !context.program.empty());
  }
  std::vector<std::string> reversed(args.rbegin(), args.rend());  // CLI11 takes the arguments back to front
  if (!becomes_program) {  // which has its streams and signals as the caller set them
    OpenStandardStreams();
    InstallInterruptHandler();
    TidyOutputDirectories();
  }
  try {
    app.parse(reversed);
  } catch (const CLI::ParseError& e) {
    if (e.get_exit_code() == static_cast<int>(CLI::ExitCodes::Success)) {  // --help, --version
      (void)app.exit(e);
      return Report(OkStatus());
    }
    return Report(UsageOf(app, e));
  } catch (...) {
    return Report(StatusOfException());
  }
  return Report(std::move(context.status));
}

}  // namespace msprobe
