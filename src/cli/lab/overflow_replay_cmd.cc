// msprobe run_overflow_check: calls of a dump that overflowed, made again.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <memory>

#include "base/message.h"
#include "base/text.h"
#include "cli/context/register_commands.h"
#include "json/writer.h"
#include "lab/overflow_replay.h"

namespace msprobe {
namespace {

struct OverflowReplayArgs {
  std::string dump, device = "0";
  bool jit = false;
};

std::string OverflowJson(const OverflowReplay& report) {
  JsonWriter json;
  json.BeginObject();
  json.Member("device", report.device);
  json.Member("calls", report.calls);
  json.Key("overflowed"), json.BeginArray();
  for (const OverflowedCall& call : report.overflowed) {
    json.BeginObject();
    json.Member("name", call.full);
    json.Member("overflow", OverflowCauseText(call.cause));
    if (!call.why.empty()) json.Member("why", call.why);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
  return json.Take() + "\n";
}

Status Run(const OverflowReplayArgs& args, bool as_json) {
  MSP_ASSIGN_OR_RETURN(const OverflowReplay report, ReplayOverflows(args.dump, args.device));
  if (as_json) {
    PrintJson(OverflowJson(report));
    return OkStatus();
  }
  Message out = Msg("{} of {} calls have NaN or infinities; they were called again on {}\n", report.overflowed.size(),
                    report.calls, report.device);
  for (const OverflowedCall& call : report.overflowed) {
    const std::string name = OneLine(call.full);
    switch (call.cause) {
      case OverflowCause::kExpected: out += Msg("  {}: expected, its inputs lead to it in float64, too\n", name); break;
      case OverflowCause::kUnexpected: out += Msg("  {}: not expected, float64 stays within the dtype\n", name); break;
      case OverflowCause::kGone: out += Msg("  {}: does not come again here\n", name); break;
      case OverflowCause::kUnknown: out += Msg("  {}: not called again: {}\n", name, OneLine(call.why)); break;
    }
  }
  PrintForPeople(out);
  return OkStatus();
}

}  // namespace

void RegisterOverflowReplay(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<OverflowReplayArgs>();
  CLI::App* command = app.add_subcommand(
      "run_overflow_check", "replay the functions of a dump that overflowed, and say which overflows are inevitable");
  command->add_option("--api_info_file", args->dump, "-api_info: dump.json of level L1 or mix")->required();
  command->add_flag("-j,--jit_compile", args->jit, "of an NPU: without effect, kernels are called as they are");
  command->add_option("-d,--device", args->device, "number of an accelerator, or a device of torch such as cpu")
      ->capture_default_str();
  command->add_flag("--json", context->json, "print the result as one JSON object");
  command->callback([args, context] { context->status = Run(*args, context->json); });
}

}  // namespace msprobe
