// msprobe code_mapping: the lines of source that kernels come from.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/message.h"
#include "base/text.h"
#include "cli/context/register_commands.h"
#include "jobs/code_mapping.h"

namespace msprobe {
namespace {

Status Run(const CodeMappingSettings& settings) {
  MSP_ASSIGN_OR_RETURN(const CodeMappingReport report, MapCode(settings));
  PrintForPeople(
      Msg("{} of {} rows have their lines of source\n  result: {}\n", report.found, report.rows, OneLine(report.path)));
  return OkStatus();
}

}  // namespace

void RegisterCodeMapping(CLI::App& app, CommandContext* context) {
  auto settings = std::make_shared<CodeMappingSettings>();
  settings->output = "./output";
  CLI::App* command =
      app.add_subcommand("code_mapping", "the lines of source that the kernels of a MindSpore dump come from");
  command->add_option("--ir", settings->ir, "graph as text: rank_N/graphs/ms_output_trace_code_graph_GRAPH.ir")
      ->required();
  command
      ->add_option("--dump_data", settings->dump,
                   "directory of one step, a file of it, or its statistic.csv, which gets two more columns")
      ->required();
  command->add_option("-o,--output", settings->output, "directory of the table")->capture_default_str();
  command->callback([settings, context] { context->status = Run(*settings); });
}

}  // namespace msprobe
