// msprobe parse: dumps of kernels as files of numpy or PyTorch.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>

#include "base/message.h"
#include "base/text.h"
#include "cli/context/register_commands.h"
#include "jobs/parse_dump.h"
#include "json/writer.h"

namespace msprobe {
namespace {

std::string Json(const ParseReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Member("written", report.written);
  json.Member("warnings", report.warnings);
  json.ArrayMember("failures", report.failures, [&](const auto& failure) {
    json.BeginObject();
    json.Member("file", failure.first);
    json.Member("why", failure.second.message());
    json.EndObject();
  });
  json.EndObject();
  return json.Take() + "\n";
}

Status Run(const ParseSettings& settings, bool as_json) {
  MSP_ASSIGN_OR_RETURN(const ParseReport report, ParseDump(settings));
  for (const Message& warning : report.warnings) PrintWarning(warning);
  as_json ? PrintJson(Json(report))
          : PrintForPeople(Msg("{} files written\n  result: {}\n", report.written.size(), OneLine(settings.output)));
  if (report.failures.empty()) return OkStatus();
  return BadInput(Msg("{} files could not be converted, {} names them: {}", report.failures.size(), report.failed_list,
                      report.failures.front().second.text()));
}

}  // namespace

void RegisterParse(CLI::App& app, CommandContext* context) {
  auto settings = std::make_shared<ParseSettings>();
  settings->output = "./output";
  auto type = std::make_shared<std::string>("pt");
  CLI::App* command =
      app.add_subcommand("parse", "convert the dumps of Ascend's kernels and of ATB to files of NumPy or PyTorch");
  command->add_option("-d,--dump_path", settings->path, "a file, or the directory of one step")->required();
  command->add_option("-t,--type", *type, "npy or pt")->check(CLI::IsMember({"npy", "pt"}))->capture_default_str();
  command->add_option("-o,--output_path", settings->output, "directory of the results")->capture_default_str();
  command->add_flag("--host", settings->host,
                    "put tensors in the order of the framework: NC1HWC0 becomes NCHW, FRACTAL_NZ a matrix");
  command->add_flag("--json", context->json, "print the summary as one JSON object");
  command->callback([settings, type, context] {
    settings->numpy = *type == "npy";
    context->status = Run(*settings, context->json);
  });
}

}  // namespace msprobe
