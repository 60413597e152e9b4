// `msprobe overflow_check`, once `nan_analyze`.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/message.h"
#include "cli/context/fail_on.h"
#include "cli/context/output_options.h"
#include "cli/context/register_commands.h"
#include "diagnose/overflow/overflow.h"
#include "diagnose/story/story.h"
#include "diagnose/story/story_judgement.h"
#include "dump/output_bound.h"
#include "dump/rank_choice.h"

namespace msprobe {
namespace {

struct OverflowArguments {
  std::string input, output = "./output";
  std::string ranks;
  uint64_t out_limit = kDefaultOutLimit;
  bool exit_code = false;
};

Status Run(const OverflowArguments& args, const CommandContext& context) {
  MSP_ASSIGN_OR_RETURN(const RankChoice ranks, RankChoice::Read(args.ranks));
  MSP_ASSIGN_OR_RETURN(const OverflowReport report, FindOverflow(args.input, ranks));
  std::string file;
  MSP_RETURN_IF_ERROR(CheckOutput(report.nodes.size(), 1, args.out_limit,
                                  Msg("choose ranks with --ranks, or give a larger --out-limit")));
  if (!report.nodes.empty()) MSP_RETURN_IF_ERROR(WriteOverflowNodes(args.output, report.nodes, &file));
  for (const Message& warning : report.warnings) PrintWarning(warning);
  const Story story = StoryOf(report);
  const Conclusion conclusion = Conclude(JudgementsOf(story, LanguageFor(context)));
  context.json
      ? PrintJson(OverflowJson(report, StoryJson(story), conclusion, file))
      : PrintForPeople(OverflowText(report, StoryText(story, LocaleLanguage()), file, !context.framework.empty()));
  Message finding;
  if (!report.first.empty()) {
    const OverflowOp& op = report.first[0].ops[0];
    finding = Msg("NaN or infinities begin at {} on rank {}", op.name, op.rank);
  }
  const ExitRule usual{args.exit_code ? FailOn::kBug : FailOn::kNever, false};
  MSP_RETURN_IF_ERROR(StatusOf(conclusion, context.fail_on, usual, std::move(finding)));
  return story.whole() ? OkStatus() : NotWhole();
}

}  // namespace

void RegisterOverflowCheck(CLI::App& app, CommandContext* context) {
  CLI::App* command =
      app.add_subcommand("overflow_check", "find the op that first produces NaN or infinity, across all ranks");
  auto args = std::make_shared<OverflowArguments>();
  command->add_option("-i,--input_path,input", args->input, "step, rank or dump directory, or a dump.json")->required();
  command->add_option("-o,--output_path", args->output, "directory of the result")->capture_default_str();
  command->add_flag("--json", context->json, "print the report as one JSON object");
  command->add_flag("--exit_code", args->exit_code, "exit with code 1 if something is found");
  AddFailOn(command, context);
  AddOutputBound(command, &args->ranks, &args->out_limit);
  command->callback([args, context] { context->status = Run(*args, *context); });
}

}  // namespace msprobe
