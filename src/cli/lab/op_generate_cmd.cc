// msprobe op_generate: a script that calls one function of a dump again.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/message.h"
#include "base/text.h"
#include "cli/context/register_commands.h"
#include "json/writer.h"
#include "lab/scripts/op_script.h"

namespace msprobe {
namespace {

struct OpGenerateArgs {
  std::string config, output = "./";
};

Status Run(const OpGenerateArgs& args, bool as_json) {
  MSP_ASSIGN_OR_RETURN(OpScriptSettings settings, OpScriptSettings::Read(args.config));
  settings.output = args.output;
  MSP_ASSIGN_OR_RETURN(const OpScript script, WriteOpScript(settings));
  if (as_json) {
    JsonWriter json;
    json.BeginObject();
    json.Member("script", script.path);
    json.Member("printed", script.printed);
    json.EndObject();
    PrintJson(json.Take() + "\n");
    return OkStatus();
  }
  PrintForPeople(Msg("script: {}\nit was run in a process of its own and printed:\n", OneLine(script.path)));
  PrintJson(script.printed);
  return OkStatus();
}

}  // namespace

void RegisterOpGenerate(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<OpGenerateArgs>();
  CLI::App* command = app.add_subcommand("op_generate", "write a script that calls one function of a dump again");
  command->add_option("-i,--config_input", args->config, "config_op.json: dump_json_path, api_name, ...")->required();
  command->add_option("-o,--api_output_path", args->output, "directory of the script")->capture_default_str();
  command->add_flag("--json", context->json, "print the result as one JSON object");
  command->callback([args, context] { context->status = Run(*args, context->json); });
}

}  // namespace msprobe
