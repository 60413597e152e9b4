// msprobe optimizer_replay: recorded steps of an optimizer, computed again in float64.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>

#include "base/message.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "jobs/optimizer_replay.h"

namespace msprobe {
namespace {

Status RunOptimizerReplay(const OptimizerReplayRequest& request, const CommandContext& context) {
  MSP_ASSIGN_OR_RETURN(const OptimizerReplayReport report, ReplayOptimizerRecords(request));
  context.json ? PrintJson(OptimizerReplayJson(report)) : PrintForPeople(OptimizerReplayText(report));
  return StatusOf(Conclude(JudgementsOf(report)), context.fail_on, {FailOn::kSuspicious, report.undecided()},
                  Msg("an optimizer does not do what its hyperparameters say, or the two sides say different things"));
}

}  // namespace

void RegisterOptimizerReplay(CLI::App& app, CommandContext* context) {
  auto request = std::make_shared<OptimizerReplayRequest>();
  auto clip = std::make_shared<double>(0);
  CLI::App* command = app.add_subcommand(
      "optimizer_replay", "compute recorded steps of an optimizer again in float64, and name the term that is wrong");
  command->add_option("a", request->a, "a record of msprobe.pytorch.OptimizerRecord")->required();
  command->add_option("b", request->b, "the record of the other side");
  command->add_option(
      "--grads", request->gradients,
      "A and B are checkpoints before and after one step, of any format; this one has its gradients under the "
      "names of the weights, and --rule and --set say the rest");
  command->add_option("--rule", request->overrides.rule,
                      "SGD, Adam, AdamW, Lion, Adafactor or Muon, where the name of the class does not say");
  command->add_option("--set", request->overrides.hyperparameters,
                      "NAME=VALUE: a hyperparameter as it should be, instead of the recorded one");
  CLI::Option* clips = command->add_option("--clip-grad", *clip, "the norm to which gradients should be clipped");
  command->add_option("-o,--output", request->output, "file for the whole result as JSON");
  command->add_flag("--json", context->json, "print the result as one JSON object");
  AddFailOn(command, context);
  command->footer(
      "Exit code: 0 as the hyperparameters say, 1 not, or the two sides differ in them, 2 wrong options, 3 not "
      "readable, 5 the formula of the optimizer is not known.");
  command->callback([request, clip, clips, context] {
    if (clips->count() > 0) request->overrides.clip_grad = *clip;
    context->status = RunOptimizerReplay(*request, *context);
  });
}

}  // namespace msprobe
