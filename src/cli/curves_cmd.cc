// msprobe curves: loss, gradient norm and learning rate of two trainings.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/message.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "jobs/curves.h"

namespace msprobe {
namespace {

Status RunCurvesCommand(const CurvesRequest& request, const CommandContext& context, bool plots) {
  MSP_ASSIGN_OR_RETURN(const CurvesResult result, CompareCurveFiles(request));
  context.json ? PrintJson(CurvesJson(result)) : PrintForPeople(CurvesText(result, plots));
  const CurveJudgement& judgement = result.judgement;
  Message finding = judgement.step ? Msg("B parts from A at step {}", *judgement.step) : Msg("B parts from A");
  if (judgement.verdict == CurveVerdict::kNoBand) {
    finding = Msg("B differs from A, and there is no golden band to judge it by: give further runs of A");
  } else if (judgement.verdict == CurveVerdict::kNotFinite) {
    finding = Msg("both runs are NaN or infinite from step {} on", judgement.step.value_or(0));
  }
  return StatusOf(Conclude(JudgementsOf(judgement)), context.fail_on, {FailOn::kCannotSay, false}, std::move(finding));
}

}  // namespace

void RegisterCurves(CLI::App& app, CommandContext* context) {
  auto request = std::make_shared<CurvesRequest>();
  auto no_plots = std::make_shared<bool>(false);
  CLI::App* command =
      app.add_subcommand("curves", "compare loss, gradient norm and learning rate of two trainings with a golden band");
  command
      ->add_option("a", request->a,
                   "the reference: a log, csv, trainer_state.json, event file or directory of "
                   "TensorBoard, or .trend.db")
      ->required();
  command->add_option("b", request->b, "the training under test")->required();
  command->add_option("more", request->more_a, "further runs of A: how far they are apart is the golden band");
  command->add_option("-o,--output", request->output, "directory for curves.json and curves.html");
  command->add_option("--pattern", request->names.pattern,
                      "a line of the logs: 'iter {step} loss {loss} {} lr {lr}'; {grad_norm}, {} is anything");
  command->add_option("--loss", request->names.loss, "word before the loss in a log, column or tag");
  command->add_option("--grad-norm", request->names.grad_norm, "the same for the norm of the gradient");
  command->add_option("--lr", request->names.learning_rate, "the same for the learning rate");
  command->add_option("--shift", request->shift, "add N to the steps of B");
  command->add_flag("--no-plots", *no_plots, "print no plots");
  command->add_flag("--json", context->json, "print the result as one JSON object");
  AddFailOn(command, context);
  command->footer(
      "Exit code: 0 equal, reasonable or within the band, 1 not, or not known, 2 wrong options, 3 not readable.");
  command->callback(
      [request, no_plots, context] { context->status = RunCurvesCommand(*request, *context, !*no_plots); });
}

}  // namespace msprobe
