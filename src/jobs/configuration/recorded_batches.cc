#include "jobs/configuration/recorded_batches.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/text.h"
#include "tensor/files/tensor_file.h"
#include "tensor/kernels/metrics_sources.h"
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

/// Names that loaders give to ids: of a file without its ending, or of a tensor in it.
bool IsTokenName(std::string_view name) {
  constexpr std::array<std::string_view, 10> kWhole{"text", "inputs", "input",  "ids",  "src",
                                                    "x",    "0",      "args.0", "arg0", "data"};
  if (Contains(name, "token_type") || Contains(name, "tokens_per") || Contains(name, "mask")) return false;
  return name.starts_with("token") || name.ends_with("tokens") || Contains(name, "input_ids") ||
         std::find(kWhole.begin(), kWhole.end(), name) != kWhole.end();
}

/// The name without the ending of a file of tensors; "" for another file.
std::string_view StemOf(std::string_view name) {
  for (const std::string_view ending : {".npy", ".npz", ".pt", ".safetensors"}) {
    if (name.ends_with(ending)) return name.substr(0, name.size() - ending.size());
  }
  return {};
}

/// A file that holds a batch, the tensors of which have names.
bool IsBatchName(std::string_view stem) {
  return stem.starts_with("batch") || stem.starts_with("sample") || stem.starts_with("data");
}

/// The rows of the last dimension, as far as there is room for them.
void AddRows(const FileTensor& t, TokenRows* rows) {
  constexpr size_t kRowsTaken = 64, kIdsTaken = 8192;
  int64_t count = 1, stride = 1;
  for (size_t i = t.shape.size(); i-- > 0;) {
    if (t.shape[i] != 1 && t.strides[i] != stride) return;  // no batch of a loader lies so
    stride *= t.shape[i];
    count *= t.shape[i];
  }
  if (!IsInteger(t.dtype) || count == 0 || t.shape.empty()) return;
  const auto length = static_cast<size_t>(t.shape.back());
  const char* from = static_cast<const char*>(t.data);
  for (size_t row = 0; row < static_cast<size_t>(count) / length && rows->size() < kRowsTaken; ++row) {
    std::vector<double> ids(std::min(length, kIdsTaken));
    if (!metrics::ToDoubles(t.dtype, from + row * length * ElementSize(t.dtype), ids.size(), ids.data())) return;
    rows->emplace_back(ids.begin(), ids.end());
  }
}

StatusOr<bool> AddTokens(const std::string& path, bool named, std::vector<NamedFeatures>* out, TokenRows* rows) {
  MSP_ASSIGN_OR_RETURN(const TensorFile file, TensorFile::Open(path));
  const size_t before = out->size();
  for (const FileTensor& t : file.tensors()) {
    // One tensor of a file that is named so is the ids, whatever its own name.
    if (!IsTokenName(t.name) && !(named && file.tensors().size() == 1)) continue;
    Stats stats;
    if (!ComputeStats(t.view(), &stats) || stats.count == 0) continue;
    TensorFeatures features{stats.max, stats.min, stats.mean, stats.norm};
    if (IsInteger(t.dtype)) {  // of the other kind both are zero
      features.max = stats.int_max != 0 ? static_cast<double>(stats.int_max) : static_cast<double>(stats.uint_max);
      features.min = stats.int_min != 0 ? static_cast<double>(stats.int_min) : static_cast<double>(stats.uint_min);
    }
    out->push_back({"input_ids", true, features});
    AddRows(t, rows);
  }
  return out->size() > before;
}

}  // namespace

StatusOr<bool> AddRecordedBatches(const std::string& directory, Pack* pack, TokenRows* rows) {
  bool found = false;
  MSP_ASSIGN_OR_RETURN(const auto steps, Numbered(directory, "step"));
  for (const auto& [step, step_path] : steps) {
    MSP_ASSIGN_OR_RETURN(const auto ranks, Numbered(step_path, "rank"));
    const std::vector<std::pair<int64_t, std::string>> of_one = {{0, step_path}};
    for (const auto& [rank, path] : ranks.empty() ? of_one : ranks) {
      MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(path));
      for (const std::string& name : names) {
        const std::string_view stem = StemOf(name);
        if (stem.empty() || (!IsTokenName(stem) && !IsBatchName(stem))) continue;
        std::vector<NamedFeatures> features;
        MSP_ASSIGN_OR_RETURN(const bool ids, AddTokens(JoinPath(path, name), IsTokenName(stem), &features, rows));
        if (!ids) continue;
        auto& all = pack->dataset[{step, rank}];
        all.insert(all.end(), features.begin(), features.end());
        found = true;
      }
    }
  }
  return found;
}

}  // namespace msprobe
