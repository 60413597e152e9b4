// msprobe weights: fingerprints of weights, which compare where the weights themselves do not meet.
#include <CLI/CLI.hpp>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "cli/context/fail_on.h"
#include "cli/context/register_commands.h"
#include "weights/fingerprint/fingerprint_file.h"
#include "weights/fingerprint/fingerprint_maker.h"
#include "weights/fingerprint/print_report.h"
#include "weights/name_map.h"
#include "weights/open_checkpoint.h"

namespace msprobe {
namespace {

struct WeightsArgs {
  std::string a, b, output, dtype;
  std::vector<std::string> history;
  bool all = false;
};

/// Fingerprints as they are, or of a checkpoint.
class WeightsSide {
 public:
  explicit WeightsSide(std::string path) : path_(std::move(path)) {}

  Status Open() {
    if (IsFingerprint(path_)) {
      MSP_ASSIGN_OR_RETURN(prints_, ReadFingerprints(path_));
      return OkStatus();
    }
    MSP_ASSIGN_OR_RETURN(checkpoint_, OpenCheckpoint(path_));
    return OkStatus();
  }
  const ModelFacts& facts() const { return checkpoint_ ? checkpoint_->facts : prints_.at(0).facts; }
  bool is_checkpoint() const { return checkpoint_.has_value(); }
  /// The type of its weights, if floating-point weights have only one.
  DType dtype() const {
    DType only = DType::kUnknown;
    for (const Fingerprint& print : prints_) {
      for (const WeightPrint& w : print.weights) {
        if (!IsFloating(w.dtype) || w.buffer) continue;
        if (only != DType::kUnknown && only != w.dtype) return DType::kUnknown;
        only = w.dtype;
      }
    }
    return only;
  }
  StatusOr<WholeModel> Whole(const ModelFacts& other, DType dtype) {
    if (checkpoint_) {
      FillFacts(&checkpoint_->facts, other);
      MSP_ASSIGN_OR_RETURN(Fingerprint print, FingerprintOf(*checkpoint_, dtype));
      prints_.clear();
      prints_.push_back(std::move(print));
    }
    return WholeOf(path_, std::move(prints_));
  }

 private:
  std::string path_;
  std::vector<Fingerprint> prints_;
  std::optional<Checkpoint> checkpoint_;
};

Status WriteWhole(const std::string& path, const std::string& text) {
  MSP_ASSIGN_OR_RETURN(OutputFile file, OutputFile::Create(path));
  MSP_RETURN_IF_ERROR(file.Write(text));
  return file.Commit();
}

Status RunWeightsFingerprint(const WeightsArgs& args, const CommandContext& context) {
  MSP_ASSIGN_OR_RETURN(const Checkpoint checkpoint, OpenCheckpoint(args.a));
  const DType dtype = args.dtype.empty() ? DType::kUnknown : ParseDType(args.dtype);
  MSP_ASSIGN_OR_RETURN(const Fingerprint print, FingerprintOf(checkpoint, dtype));
  if (!args.output.empty()) MSP_RETURN_IF_ERROR(WriteFingerprint(print, args.output));
  if (context.json) {
    PrintJson(FingerprintText(print));
    return OkStatus();
  }
  Message out;
  for (const Message& note : print.notes) out += Msg("note: {}\n", note);
  out += Msg("{} weights of {} ({})\n", print.weights.size(), OneLine(args.a), checkpoint.format);
  if (!args.output.empty()) out += Msg("  result: {}\n", OneLine(args.output));
  PrintForPeople(out);
  return OkStatus();
}

Status RunWeightsCompare(const WeightsArgs& args, const CommandContext& context) {
  WeightsSide a(args.a), b(args.b);
  MSP_RETURN_IF_ERROR(a.Open());
  MSP_RETURN_IF_ERROR(b.Open());
  const ModelFacts facts_a = a.facts(), facts_b = b.facts();
  // A checkpoint can be rounded to what the other side was made of.
  const DType asked = args.dtype.empty() ? DType::kUnknown : ParseDType(args.dtype);
  MSP_ASSIGN_OR_RETURN(WholeModel whole_a, a.Whole(facts_b, asked));
  MSP_ASSIGN_OR_RETURN(WholeModel whole_b, b.Whole(facts_a, asked));
  std::vector<WholeModel> history;
  for (auto path = args.history.rbegin(); path != args.history.rend(); ++path) {
    WeightsSide earlier(*path);
    MSP_RETURN_IF_ERROR(earlier.Open());
    MSP_ASSIGN_OR_RETURN(history.emplace_back(), earlier.Whole(facts_a, asked));
  }
  const PrintComparison comparison = ComparePrints(&whole_a, &whole_b, history);
  const std::string json = PrintsJson(whole_a, whole_b, comparison);
  if (!args.output.empty()) MSP_RETURN_IF_ERROR(WriteWhole(args.output, json));
  context.json ? PrintJson(json) : PrintForPeople(PrintsText(whole_a, whole_b, comparison, args.all));
  size_t findings = 0;
  for (const PrintDiff& d : comparison.weights) findings += IsFinding(d.verdict) ? 1 : 0;
  return StatusOf(Conclude(JudgementsOf(comparison)), context.fail_on, {FailOn::kSuspicious, true},
                  Msg("{} weights are not bit-equal", findings));
}

void AddDType(CLI::App* command, std::string* dtype, const std::string& what) {
  command->add_option("--dtype", *dtype, what)->check(CLI::IsMember({"float64", "float32", "float16", "bfloat16"}));
}

}  // namespace

void RegisterWeights(CLI::App& app, CommandContext* context) {
  auto args = std::make_shared<WeightsArgs>();
  CLI::App* command = app.add_subcommand("weights", "fingerprints of weights: are those of two programs the same bits");
  command->require_subcommand(1);
  CLI::App* make = command->add_subcommand("fingerprint", "make the fingerprint of a checkpoint");
  make->add_option("checkpoint", args->a, "a file or a directory of any format")->required();
  make->add_option("-o,--output", args->output, "file for the fingerprint");
  AddDType(make, &args->dtype, "round floating-point weights to this type first");
  make->add_flag("--json", context->json, "print the fingerprint as one JSON object");
  make->callback([args, context] { context->status = RunWeightsFingerprint(*args, *context); });
  CLI::App* compare = command->add_subcommand("compare", "say which weights are not the same bits, and what they are");
  compare->add_option("a", args->a, "a fingerprint, a directory of those of all ranks, or a checkpoint")->required();
  compare->add_option("b", args->b, "what it is compared with")->required();
  compare->add_option("-o,--output", args->output, "file for the whole result as JSON");
  compare->add_option("--history", args->history, "fingerprints of earlier steps, the oldest first");
  AddDType(compare, &args->dtype, "round the weights of checkpoints to this type first");
  compare->add_flag("--all", args->all, "list equal weights as well");
  AddFailOn(compare, context);
  compare->add_flag("--json", context->json, "print the result as one JSON object");
  compare->footer(
      "Exit code: 0 all weights are bit-equal, 1 some are not, 2 wrong options, 3 not readable, 5 some cannot be "
      "compared.");
  compare->callback([args, context] { context->status = RunWeightsCompare(*args, *context); });
}

}  // namespace msprobe
