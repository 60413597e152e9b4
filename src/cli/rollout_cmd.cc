// msprobe rollout: why the engine's log-probabilities are not those of the trainer.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/message.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "rollout/locator/locate.h"

namespace msprobe {
namespace {

struct RolloutArguments {
  std::string train, rollout;
  std::vector<std::string> also_train, also_rollout;
  RolloutOptions options;
};

Status RunRolloutCommand(RolloutArguments args, const CommandContext& context) {
  RolloutOptions& options = args.options;
  options.train = {args.train};
  options.train.insert(options.train.end(), args.also_train.begin(), args.also_train.end());
  options.rollout = {args.rollout};
  options.rollout.insert(options.rollout.end(), args.also_rollout.begin(), args.also_rollout.end());
  MSP_ASSIGN_OR_RETURN(const RolloutReport report, LocateRollout(options));
  context.json ? PrintJson(RolloutJson(report)) : PrintForPeople(RolloutText(report));
  return StatusOf(Conclude(JudgementsOf(report)), context.fail_on, {FailOn::kSuspicious, true},
                  Msg("trainer and rollout part"));
}

}  // namespace

void RegisterRollout(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<RolloutArguments>();
  CLI::App* command = app.add_subcommand(
      "rollout",
      "say why a rollout engine gives other log-probabilities than the trainer: token, weight, sampling, "
      "routing or op");
  command->add_option("train", args->train, "directory or file of the trainer: records, weights, dumps")->required();
  command->add_option("rollout", args->rollout, "directory or file of the engine")->required();
  command->add_option("--also-train", args->also_train, "further directories or files of the trainer");
  command->add_option("--also-rollout", args->also_rollout, "further directories or files of the engine");
  command->add_option("--history", args->options.history, "weights of earlier steps, which the engine may still have");
  command
      ->add_option("--allowed-lag", args->options.allowed_lag,
                   "updates that the engine may be behind, in asynchronous training")
      ->check(CLI::NonNegativeNumber);
  command->add_option("-o,--output", args->options.output, "directory of the result as JSON and as a page");
  command->add_flag("--json", context->json, "print the report as one JSON object");
  AddFailOn(command, context);
  command->footer(
      "Exit code: 0 they agree, or differ by rounding or as asked for, 1 a cause is named, 2 wrong options, "
      "3 not readable, 5 not decided.");
  command->callback([args, context] { context->status = RunRolloutCommand(*args, *context); });
}

}  // namespace msprobe
