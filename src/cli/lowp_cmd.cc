// msprobe lowp: what the layers of a recorded step would lose in fp8, fp6, fp4 or int8.
#include <CLI/CLI.hpp>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "lowp/low_precision.h"

namespace msprobe {
namespace {

struct LowPrecisionArguments {
  LowPrecisionRequest request;
  std::string output;
};

Status WriteFile(const std::string& directory, std::string_view name, std::string_view text) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(JoinPath(directory, name)));
  MSP_RETURN_IF_ERROR(file.Write(text));
  return file.CommitResult();
}

Status Run(const LowPrecisionArguments& args, const CommandContext& context) {
  MSP_ASSIGN_OR_RETURN(const LowPrecisionReport report, MeasureLowPrecision(args.request));
  if (!args.output.empty()) {
    MSP_RETURN_IF_ERROR(MakeOutputDir(args.output));
    MSP_RETURN_IF_ERROR(WriteFile(args.output, "lowp.csv", LowPrecisionCsv(report)));
    MSP_RETURN_IF_ERROR(WriteFile(args.output, "lowp.json", LowPrecisionJson(report)));
  }
  context.json ? PrintJson(LowPrecisionJson(report)) : PrintForPeople(LowPrecisionText(report, LocaleLanguage()));
  MSP_RETURN_IF_ERROR(StatusOf(Conclude(JudgementsOf(report)), context.fail_on, {FailOn::kNever, false}));
  return report.gaps.empty() ? OkStatus() : NotWhole();
}

}  // namespace

void RegisterLowp(CLI::App& app, CommandContext* context) {
  CLI::App* command = app.add_subcommand(
      "lowp", "may it be trained in fp8? what each layer of a recorded step loses in formats of few bits");
  auto args = std::make_shared<LowPrecisionArguments>();
  args->request.formats = {"e4m3", "e5m2", "mxfp8", "mxfp6", "mxfp4", "nvfp4", "int8"};
  command->add_option("dump", args->request.dump, "a dump with tensors, a step or rank of it, or a dump.json")
      ->required();
  CLI::Option* formats =
      command
          ->add_option("--formats", args->request.formats,
                       "formats for inputs, weights and gradients: e4m3, e5m2, e3m2, e2m3, e2m1 or int8 with :tensor, "
                       ":row, :16, :32, "
                       ":1x128, :128x128, :delayed or :cast behind it; mxfp8, mxfp6, mxfp4, nvfp4, bf16")
          ->delimiter(',');
  CLI::Option* recipes = command
                             ->add_option("--recipe", args->request.recipes,
                                          "tensorwise, rowwise, delayed, blockwise, or INPUTS/WEIGHTS/GRADIENTS")
                             ->delimiter(',');
  command->add_option("--step", args->request.step, "the step to look at; the last one without it");
  command->add_flag("--stochastic", args->request.stochastic,
                    "round up or down at random instead of to the nearest number");
  command->add_option("--seed", args->request.seed, "of --stochastic")->capture_default_str();
  command->add_option("-o,--output_path", args->output, "directory for lowp.csv and lowp.json");
  command->add_flag("--json", context->json, "print the result as one JSON object");
  AddFailOn(command, context);
  command->callback([args, formats, recipes, context] {
    if (recipes->count() > 0 && formats->count() == 0) args->request.formats.clear();
    context->status = Run(*args, *context);
  });
}

}  // namespace msprobe
