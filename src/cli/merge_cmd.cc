// msprobe merge_result: the results of several ranks side by side.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/language.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/context/register_commands.h"
#include "jobs/merge_result.h"
#include "json/writer.h"

namespace msprobe {
namespace {

std::string Json(const MergeReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Member("file", report.path);
  json.Member("ranks", report.ranks);
  json.Member("rows", report.rows);
  json.Member("metrics", report.metrics);
  json.Member("warnings", report.warnings);
  json.Key("not_whole"), WriteGaps(&json, report.gaps);
  json.Member("rows_without_tensor", report.unread);
  json.EndObject();
  return json.Take() + "\n";
}

Status Run(const MergeSettings& settings, bool as_json) {
  MSP_ASSIGN_OR_RETURN(const MergeReport report, MergeResults(settings));
  for (const Message& warning : report.warnings) PrintWarning(warning);
  if (!as_json) {
    if (const std::string gaps = GapText(report.gaps, LocaleLanguage()); !gaps.empty())
      PrintForPeople(Message(gaps + "\n"));
    if (report.unread > 0) {
      PrintForPeople(Msg("{} rows had no tensor when the ranks were compared\n", report.unread));
    }
  }
  as_json ? PrintJson(Json(report))
          : PrintForPeople(Msg("{} rows of {} ranks, {} metrics\n  result: {}\n", report.rows, report.ranks.size(),
                               report.metrics.size(), OneLine(report.path)));
  return report.whole() ? OkStatus() : NotWhole();
}

}  // namespace

void RegisterMergeResult(CLI::App& app, CommandContext* context) {
  auto settings = std::make_shared<MergeSettings>();
  CLI::App* command =
      app.add_subcommand("merge_result", "put the comparison results of several ranks side by side in one workbook");
  command->add_option("-i,--input_dir", settings->input, "directory with compare_result_rank*.csv or .xlsx")
      ->required();
  command->add_option("-o,--output_dir", settings->output, "directory of the merged workbook")->required();
  command
      ->add_option("--config-path", settings->config,
                   "-config: YAML with 'api', the APIs to merge, and 'compare_index', their metrics (default: all)")
      ->required();
  command->add_flag("--json", context->json, "print the summary as one JSON object");
  command->callback([settings, context] { context->status = Run(*settings, context->json); });
}

}  // namespace msprobe
