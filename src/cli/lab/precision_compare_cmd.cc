// msprobe api_precision_compare: the results of acc_check on two devices against each other.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/message.h"
#include "base/text.h"
#include "cli/context/register_commands.h"
#include "cli/lab/lab_options.h"
#include "json/writer.h"
#include "lab/precision_compare.h"

namespace msprobe {
namespace {

std::string Json(const PrecisionCompareReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Member("result", report.result);
  json.Member("details", report.details);
  json.Member("passed", report.passed);
  json.Member("warned", report.warned);
  json.Member("failed", report.failed);
  json.Member("skipped", report.skipped);
  json.Member("warnings", report.warnings);
  json.EndObject();
  return json.Take() + "\n";
}

Status Run(const PrecisionCompareSettings& settings, bool as_json) {
  MSP_ASSIGN_OR_RETURN(const PrecisionCompareReport report, ComparePrecision(settings));
  for (const Message& warning : report.warnings) PrintWarning(warning);
  as_json ? PrintJson(Json(report))
          : PrintForPeople(
                Msg("{} functions pass, {} with a warning, {} fail, {} are skipped\n  result: {}\n  details: {}\n",
                    report.passed, report.warned, report.failed, report.skipped, OneLine(report.result),
                    OneLine(report.details)));
  return OkStatus();
}

}  // namespace

void RegisterPrecisionCompare(CLI::App& app, CommandContext* context) {
  auto settings = std::make_shared<PrecisionCompareSettings>();
  CLI::App* command =
      app.add_subcommand("api_precision_compare", "compare what acc_check found on two devices, function by function");
  command
      ->add_option("--npu_csv_path", settings->npu,
                   "-npu: accuracy_checking_details_*.csv of the device that is judged")
      ->required();
  command->add_option("--gpu_csv_path", settings->gpu, "-gpu: the same file of the device that it is compared with")
      ->required();
  command->add_option("-o,--out_path", settings->output, "directory of the two tables")->capture_default_str();
  AddStandardsOption(command, &settings->release);
  command->add_flag("--json", context->json, "print the summary as one JSON object");
  command->callback([settings, context] { context->status = Run(*settings, context->json); });
}

}  // namespace msprobe
