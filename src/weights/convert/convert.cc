#include "weights/convert/convert.h"

#include <fmt/format.h>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "weights/open_checkpoint.h"

namespace msprobe {
namespace {

using WriteWeights = Status (*)(const std::string& path, const Checkpoint& from, const std::vector<OutWeight>& weights);

struct Target {
  WriteWeights write;
  NamesOf names;
};

StatusOr<Target> TargetOf(const std::string& output, const Checkpoint& from) {
  const bool mindspore = from.format == "MindSpore";
  if (output.ends_with(".ckpt")) return Target{WriteMindSporeFile, mindspore ? NamesOf::kSame : NamesOf::kMindSpore};
  const NamesOf torch = mindspore ? NamesOf::kTorch : NamesOf::kSame;
  if (output.ends_with(".safetensors")) return Target{WriteSafetensorsFile, torch};
  if (output.ends_with(".pt") || output.ends_with(".pth") || output.ends_with(".bin"))
    return Target{WriteTorchFile, torch};
  return UsageError(Msg("{} has no known ending: name a file .ckpt, .safetensors, .pt, .pth or .bin", OneLine(output)));
}

}  // namespace

StatusOr<ConvertReport> ConvertCheckpoint(const std::string& input, const std::string& output,
                                          const ConvertOptions& options) {
  MSP_ASSIGN_OR_RETURN(Checkpoint from, OpenCheckpoint(input));
  MSP_ASSIGN_OR_RETURN(const Target target, TargetOf(output, from));
  if (PathExists(output)) return BadInput(Msg("{} exists: choose another file", output));
  if (from.tensors.empty()) return BadInput(Msg("{} holds no weights: give the checkpoint of a model", input));
  std::optional<MapFile> map;
  if (!options.map.empty()) {
    MSP_ASSIGN_OR_RETURN(map, ReadMapFile(options.map));
  }
  const NamesOf names = options.names.value_or(target.names);
  const bool by_roles = names == NamesOf::kMindFormers || names == NamesOf::kTransformers;
  ConvertPlan plan;
  Checkpoint like;
  if (!options.like.empty()) {
    MSP_ASSIGN_OR_RETURN(like, OpenCheckpoint(options.like));
    MSP_RETURN_IF_ERROR(PlanLike(&from, &like, map ? &*map : nullptr, &plan));
  } else if (by_roles) {
    MSP_RETURN_IF_ERROR(PlanByRoles(from, names, &plan));
  } else {
    MSP_RETURN_IF_ERROR(PlanByLayers(from, names, map ? &*map : nullptr, &plan));
  }
  ConvertReport report;
  for (OutWeight& w : plan.weights) {
    if (options.dtype != DType::kUnknown && IsFloating(w.dtype)) w.dtype = options.dtype;
    report.bytes += static_cast<uint64_t>(w.tensor.elements()) * ElementSize(w.dtype);
  }
  MSP_RETURN_IF_ERROR(target.write(output, from, plan.weights));
  report.format = from.format;
  report.tensors = plan.weights.size();
  report.names = std::move(plan.names);
  report.left_out = std::move(plan.left_out);
  report.notes = from.notes;
  report.notes.insert(report.notes.end(), plan.notes.begin(), plan.notes.end());
  if (!from.optimizer.empty())
    report.notes.push_back(Msg("{} states of the optimizer are not converted", from.optimizer.size()));
  return report;
}

}  // namespace msprobe
