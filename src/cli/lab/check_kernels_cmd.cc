// msprobe check_kernels: the kernels that torch.compile generates, beside eager and float64.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <memory>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "base/words/times_text.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "json/writer.h"
#include "judgement/judgement_json.h"
#include "lab/kernels/compiled_kernels.h"

namespace msprobe {
namespace {

struct CheckKernelsArgs {
  std::string what;  // FILE:FUNCTION
  bool forward_only = false;
  CompiledSettings settings;
};

void WriteTexts(JsonWriter* json, const char* key, const std::vector<std::string>& texts) {
  json->Key(key), json->BeginArray();
  for (const std::string& text : texts) json->String(text);
  json->EndArray();
}

void WriteFigure(JsonWriter* json, const char* key, double v) {
  if (std::isfinite(v)) {
    json->Member(key, v);
  } else {
    json->Member(key, "inf");
  }
}

/// Of the seven verdicts of kernels.py. A value that is recomputed otherwise than it was first is no matter of
/// rounding.
JudgementKind KindOf(const CompiledKernel& k) {
  if (k.wrong()) return JudgementKind::kBug;
  if (k.verdict == "not known") return JudgementKind::kCannotSay;
  if (k.recomputed_differently()) return JudgementKind::kSuspicious;
  if (k.verdict == "same bits") return JudgementKind::kBitEqual;
  return k.verdict == "eager nearer" ? JudgementKind::kAnotherWay : JudgementKind::kRoundOff;
}

std::vector<Judgement> JudgementsOf(const CompiledReport& report) {
  std::vector<Judgement> out;
  for (const CompiledKernel& k : report.kernels) {
    Judgement& one = out.emplace_back();
    one.kind = KindOf(k);
    one.about = Message(OneLine(k.blamed.empty() ? k.node : k.blamed));
    one.figure = k.compiled;
    one.evidence.push_back(one.kind == JudgementKind::kBug ? Msg("{} is compiled wrong", OneLine(k.kernel))
                                                           : Message(OneLine(k.note.empty() ? k.verdict : k.note)));
    one.basis = Msg("units of what rounding explains");
  }
  return out;
}

std::string KernelsJson(const CompiledReport& report) {
  JsonWriter json;
  json.BeginObject();
  json.Member("torch", report.torch);
  json.Key("results"), json.BeginArray();
  for (const CompiledKernel& k : report.kernels) {
    json.BeginObject();
    json.Member("graph", k.graph), json.Member("direction", k.direction), json.Member("kernel", k.kernel);
    json.Member("buffer", k.buffer), json.Member("node", k.node);
    WriteTexts(&json, "nodes", k.nodes), WriteTexts(&json, "lines", k.lines);
    json.Member("verdict", k.verdict);
    WriteFigure(&json, "compiled", k.compiled), WriteFigure(&json, "eager", k.eager);
    json.Member("note", k.note), json.Member("blamed", k.blamed), json.Member("repro", k.repro);
    json.EndObject();
  }
  json.EndArray();
  WriteConclusion(Conclude(JudgementsOf(report)), &json);
  json.EndObject();
  return json.Take() + "\n";
}

Message KernelText(const CompiledKernel& k) {
  const std::string node = OneLine(k.blamed.empty() ? k.node : k.blamed);
  std::string lines;
  for (const std::string& line : k.lines) lines += (lines.empty() ? "" : ", ") + OneLine(line);
  Message out = Msg("  {} {}: {} is compiled wrong, {} times what rounding explains, eager {:.3g} ({})\n", k.direction,
                    OneLine(k.kernel), node, TimesText(k.compiled, 3), k.eager, lines);
  if (!k.repro.empty()) out += Msg("    script: {}\n", OneLine(k.repro));
  return out;
}

Message ReportText(const CompiledReport& report) {
  const auto count = [&](std::string_view verdict) {
    return std::count_if(report.kernels.begin(), report.kernels.end(),
                         [&](const CompiledKernel& k) { return k.verdict == verdict; });
  };
  Message out = Msg(
      "{} results of kernels: {} the same bits as eager, {} round-off, {} nearer than eager, {} less near than eager, "
      "{} wrong, {} not "
      "known\n",
      report.kernels.size(), count("same bits"), count("both round-off"), count("compiled nearer"),
      count("eager nearer"), count("compiled wrong"), count("not known"));
  for (const CompiledKernel& k : report.kernels) {
    if (k.wrong()) out += KernelText(k);
    if (!k.wrong() && k.recomputed_differently())
      out += Msg("  {} {}: {} is suspicious: {}\n", k.direction, OneLine(k.kernel), OneLine(k.node), OneLine(k.note));
  }
  return out;
}

Status Run(CheckKernelsArgs args, const CommandContext& context) {
  const size_t colon = args.what.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == args.what.size())
    return UsageError(Msg("check_kernels: give a file and a function in it, such as model.py:make"));
  args.settings.file = args.what.substr(0, colon), args.settings.function = args.what.substr(colon + 1);
  args.settings.backward = !args.forward_only;
  MSP_RETURN_IF_ERROR(MappedFile::Open(args.settings.file).status());
  if (!args.settings.repro_dir.empty()) MSP_RETURN_IF_ERROR(MakeOutputDir(args.settings.repro_dir));
  MSP_ASSIGN_OR_RETURN(const CompiledReport report, CheckKernels(args.settings));
  if (context.json) {
    PrintJson(KernelsJson(report));
  } else {
    PrintForPeople(ReportText(report));
  }
  return StatusOf(Conclude(JudgementsOf(report)), context.fail_on, {});
}

}  // namespace

void RegisterCheckKernels(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<CheckKernelsArgs>();
  CLI::App* command = app.add_subcommand("check_kernels", "judge each kernel that torch.compile generates");
  command->add_option("what", args->what, "FILE:FUNCTION, which returns a function or model and its arguments")
      ->required();
  command->add_option("-o,--output", args->settings.repro_dir, "directory of scripts that show wrong results");
  command->add_flag("--forward", args->forward_only, "without the backward pass");
  command->add_flag("--json", context->json, "print the result as one JSON object");
  AddFailOn(command, context);
  command->callback([args, context] { context->status = Run(*args, *context); });
}

}  // namespace msprobe
