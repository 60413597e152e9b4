// Sets of tensors by step and rank, as `msprobe run --save-batches` and `--save-grads` write them: step_N/rank_R/FILES.
#include <fmt/format.h>

#include <algorithm>

#include "base/text.h"
#include "weights/readers.h"

namespace msprobe {
namespace {

/// The directories below `directory` whose names are `prefix` and a number, in the order of the numbers.
StatusOr<std::vector<std::string>> Numbered(const std::string& directory, std::string_view prefix) {
  MSP_ASSIGN_OR_RETURN(std::vector<std::string> names, ListDirectory(directory));
  std::erase_if(names, [&](const std::string& name) {
    return !name.starts_with(prefix) || !IsDigits(std::string_view(name).substr(prefix.size())) ||
           !IsDirectory(JoinPath(directory, name));
  });
  // A longer number is a larger one.
  std::sort(names.begin(), names.end(), [](const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  });
  return names;
}

/// "batch_1.safetensors" -> "1/": the second batch of a step has names of its own. An .npy file is named by its name.
std::string PrefixOf(const std::string& file) {
  const std::string stem = file.substr(0, file.rfind('.'));
  const size_t bar = stem.rfind('_');
  if (!file.ends_with(".safetensors") || bar == std::string::npos ||
      !IsDigits(std::string_view(stem).substr(bar + 1))) {
    return "";
  }
  return stem.substr(bar + 1) + "/";
}

Status ReadFiles(const std::string& directory, const std::string& prefix, Checkpoint* out) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  for (const std::string& name : names) {
    const bool array = name.ends_with(".npy");
    if (!array && !name.ends_with(".safetensors") && !name.ends_with(".npz")) continue;
    const size_t before = out->tensors.size();
    MSP_RETURN_IF_ERROR(ReadTensorFile(JoinPath(directory, name), out));
    for (size_t i = before; i < out->tensors.size(); ++i) {
      WeightTensor& t = out->tensors[i];
      t.name = prefix + (array ? name.substr(0, name.size() - 4) : PrefixOf(name) + t.name);
    }
  }
  return OkStatus();
}

}  // namespace

bool HasSteps(const std::string& directory) {
  const auto steps = Numbered(directory, "step_");
  if (!steps.ok() || steps->empty()) return false;
  const auto ranks = Numbered(JoinPath(directory, steps->front()), "rank_");
  return ranks.ok() && !ranks->empty();
}

bool IsStep(const std::string& directory) {
  const auto ranks = Numbered(directory, "rank_");
  if (!ranks.ok() || ranks->empty()) return false;
  const auto names = ListDirectory(JoinPath(directory, ranks->front()));
  return names.ok() && std::any_of(names->begin(), names->end(), [](const std::string& name) {
           return name.starts_with("batch") || name.starts_with("grads");
         });
}

Status ReadStep(const std::string& directory, Checkpoint* out) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> ranks, Numbered(directory, "rank_"));
  for (const std::string& rank : ranks) MSP_RETURN_IF_ERROR(ReadFiles(JoinPath(directory, rank), rank + "/", out));
  out->format = "1 step";
  return OkStatus();
}

Status ReadSteps(const std::string& directory, Checkpoint* out) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> steps, Numbered(directory, "step_"));
  for (const std::string& step : steps) {
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> ranks, Numbered(JoinPath(directory, step), "rank_"));
    for (const std::string& rank : ranks) {
      MSP_RETURN_IF_ERROR(ReadFiles(JoinPath(JoinPath(directory, step), rank), fmt::format("{}/{}/", step, rank), out));
    }
  }
  out->format = fmt::format("{} steps", steps.size());
  return OkStatus();
}

}  // namespace msprobe
