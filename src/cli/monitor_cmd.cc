// msprobe monitor: how the monitors of a run are doing, what their series say, and a training command with a monitor
// attached.
#include <CLI/CLI.hpp>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <string>

#include "base/message.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "cli/launch/launch.h"
#include "cli/monitor/show_run.h"
#include "curves/read_curves.h"
#include "judge/judge_directory.h"
#include "monitor/run_status.h"

namespace msprobe {
namespace {

Status ShowStatus(const std::string& directory, bool as_json) {
  const auto clock = std::chrono::system_clock::now().time_since_epoch();
  const double now = std::chrono::duration<double>(clock).count();
  MSP_ASSIGN_OR_RETURN(const RunStatus run, ReadRunStatus(directory, now));
  as_json ? PrintJson(RunStatusJson(run, now)) : PrintForPeople(RunStatusText(run, now));
  const size_t count = run.findings();
  if (count == 0) return OkStatus();
  return {Code::kFindings, count == 1 ? Msg("{} finding", count) : Msg("{} findings", count)};
}

struct JudgeArguments {
  std::string loss;
  JudgeRequest request;
};

Status ShowJudgement(const JudgeArguments& arguments, const CommandContext& context) {
  JudgeRequest request = arguments.request;
  if (!arguments.loss.empty()) {
    MSP_ASSIGN_OR_RETURN(const RunCurves curves, ReadCurves(arguments.loss, {}));
    const Curve& loss = curves.of(CurveKind::kLoss);
    if (loss.empty())
      return BadInput(Msg("{} has no loss: give a log or a csv file with a column loss", arguments.loss));
    for (size_t i = 0; i < loss.size(); ++i) request.loss.emplace_back(loss.steps[i], loss.values[i]);
    const Curve& rates = curves.of(CurveKind::kLearningRate);
    for (size_t i = 0; i < rates.size(); ++i) request.rates.emplace_back(rates.steps[i], rates.values[i]);
  }
  MSP_ASSIGN_OR_RETURN(const JudgedDirectory judgement, JudgeDirectory(request));
  context.json ? PrintJson(JudgementJson(judgement)) : PrintForPeople(JudgementText(judgement));
  const size_t count = judgement.events.size();
  return StatusOf(Conclude(JudgementsOf(judgement)), context.fail_on, {FailOn::kSuspicious, judgement.too_early()},
                  count == 1 ? Msg("{} finding", count) : Msg("{} findings", count));
}

void RegisterJudge(CLI::App* command, CommandContext* context) {
  auto arguments = std::make_shared<JudgeArguments>();
  CLI::App* judge = command->add_subcommand("judge", "who began: which layer, metric and rank a change began with");
  judge->add_option("directory", arguments->request.directory, "output directory of the monitor")->required();
  judge->add_option("--loss", arguments->loss, "log or csv file with the loss, where the monitor does not have it");
  judge
      ->add_option("--false-alarms", arguments->request.options.false_alarms,
                   "false alarms that a healthy run of 2,000 steps may have, over all series")
      ->check(CLI::Range(1e-6, 10.0))
      ->capture_default_str();
  judge->add_option("--from-step", arguments->request.options.from_step, "report only changes from this step on");
  judge->add_flag("--json", context->json, "print the result as one JSON object");
  AddFailOn(judge, context);
  judge->footer("Exit code: 0 no change, 1 findings, 2 wrong options, 3 not readable, 5 too early to judge.");
  judge->callback([arguments, context] { context->status = ShowJudgement(*arguments, *context); });
}

Status Show(const ShowRunRequest& request, bool as_json) {
  MSP_ASSIGN_OR_RETURN(const Message text, ShowRun(request, as_json));
  as_json ? PrintJson(text) : PrintForPeople(text);
  return OkStatus();
}

bool LocaleHasBlocks() {
  for (const char* name : {"LC_ALL", "LC_CTYPE", "LANG"}) {
    const char* value = std::getenv(name);
    if (value == nullptr || *value == '\0') continue;
    const std::string_view text(value);
    return text.find("UTF-8") != std::string_view::npos || text.find("utf8") != std::string_view::npos;
  }
  return false;
}

void AddShow(CLI::App* command, CommandContext* context) {
  auto request = std::make_shared<ShowRunRequest>();
  CLI::App* show = command->add_subcommand("show", "layers over steps, and plots of series, on the terminal");
  show->add_option("directory", request->directory, "output directory of the monitor")->required();
  show->add_option("--series", request->series, "plot series with this in their names, up to 6");
  show->add_option("--metric", request->metric, "grad_reduced unless given");
  show->add_option("--stat", request->stat, "norm unless given");
  show->add_option("--rank", request->rank, "the first unless given");
  show->add_option("--steps", request->steps, "only these steps, such as 400-440");
  show->add_flag("--all", request->all_series, "a row for each series instead of each layer");
  show->add_option("--width", request->width, "columns; those of the terminal unless given");
  show->add_option("--height", request->height, "rows of a plot");
  show->add_flag("--json", context->json, "print the values as one JSON object");
  show->callback([request, context] {
    request->blocks = LocaleHasBlocks();
    context->status = Show(*request, context->json);
  });
}

}  // namespace

void RegisterMonitor(CLI::App& app, CommandContext* context) {
  auto request = std::make_shared<AttachRequest>();
  auto directory = std::make_shared<std::string>();
  request->mode = "monitor";
  CLI::App* command = app.add_subcommand(
      "monitor", "watch gradients, parameters and activations of a training command, without changing its script");
  command->add_option("--config", request->config,
                      "configuration of the monitor; without it batch, loss, learning rates, gradients, optimizer "
                      "state, parameters and laws");
  command->add_option("--output", request->dump_path, "directory of the results instead of MONITOR_OUTPUT_DIR");
  command->add_flag("--csv", request->csv, "write csv files besides the series; with --config its \"format\" says so");
  CLI::App* status = command->add_subcommand("status", "ranks of a monitored run that fell behind, hang or are silent");
  status->add_option("directory", *directory, "output directory of the monitor")->required();
  status->add_flag("--json", context->json, "print the result as one JSON object");
  status->footer("Exit code: 0 all well, 1 findings, 2 wrong options, 3 not readable.");
  status->callback([directory, context] { context->status = ShowStatus(*directory, context->json); });
  command->footer("Your command comes last: msprobe monitor --config monitor.json -- torchrun train.py ARGUMENTS");
  RegisterJudge(command, context);
  AddShow(command, context);
  command->callback([request, context, command] {
    if (!command->get_subcommands().empty()) return;
    if (request->dump_path.empty()) {
      const char* given = std::getenv("MONITOR_OUTPUT_DIR");
      request->dump_path = given != nullptr ? given : "monitor_output";
    }
    context->status = CheckLaunch(request.get(), context->program);
    if (context->status.ok()) context->status = BecomeProgram(*request, context->program);
  });
}

}  // namespace msprobe
