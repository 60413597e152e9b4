#include "jobs/configuration/recorded_batches.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "tensor/files/tensor_file.h"
#include "tensor/kernels/stats.h"

namespace msprobe {
namespace {

/// "step_12" and "step12" with their numbers.
StatusOr<std::vector<std::pair<int64_t, std::string>>> Numbered(const std::string& directory, std::string_view word) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<std::pair<int64_t, std::string>> out;
  constexpr size_t kMostDigits = 12;
  for (const std::string& name : names) {
    if (!name.starts_with(word)) continue;
    std::string_view number = std::string_view(name).substr(word.size());
    if (number.starts_with('_')) number.remove_prefix(1);
    std::string path = JoinPath(directory, name);
    if (IsDigits(number) && number.size() <= kMostDigits && IsDirectory(path))
      out.emplace_back(std::stoll(std::string(number)), std::move(path));
  }
  std::sort(out.begin(), out.end());
  return out;
}

bool IsTokenFile(std::string_view name) {
  constexpr std::array<std::string_view, 3> kEndings{".npy", ".pt", ".safetensors"};
  return (name.starts_with("tokens") || name.starts_with("input_ids")) &&
         std::any_of(kEndings.begin(), kEndings.end(), [&](auto ending) { return name.ends_with(ending); });
}

Status AddTokens(const std::string& path, std::vector<NamedFeatures>* out) {
  MSP_ASSIGN_OR_RETURN(const TensorFile file, TensorFile::Open(path));
  for (const FileTensor& t : file.tensors()) {
    Stats stats;
    if (!ComputeStats(t.view(), &stats) || stats.count == 0) continue;
    TensorFeatures features{stats.max, stats.min, stats.mean, stats.norm};
    if (IsInteger(t.dtype)) {  // of the other kind both are zero
      features.max = stats.int_max != 0 ? static_cast<double>(stats.int_max) : static_cast<double>(stats.uint_max);
      features.min = stats.int_min != 0 ? static_cast<double>(stats.int_min) : static_cast<double>(stats.uint_min);
    }
    out->push_back({"input_ids", true, features});
  }
  return OkStatus();
}

}  // namespace

StatusOr<bool> AddRecordedBatches(const std::string& directory, Pack* pack) {
  bool found = false;
  MSP_ASSIGN_OR_RETURN(const auto steps, Numbered(directory, "step"));
  for (const auto& [step, step_path] : steps) {
    MSP_ASSIGN_OR_RETURN(const auto ranks, Numbered(step_path, "rank"));
    for (const auto& [rank, path] : ranks) {
      MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
      for (const std::string& name : names) {
        if (!IsTokenFile(name)) continue;
        MSP_RETURN_IF_ERROR(AddTokens(JoinPath(path, name), &pack->dataset[{step, rank}]));
        found = true;
      }
    }
  }
  return found;
}

}  // namespace msprobe
