#include "jobs/replicas.h"

#include <filesystem>
#include <map>

#include "base/file.h"
#include "dump/same_content.h"
#include "dump/step_summary.h"
#include "dump/wholeness.h"

namespace msprobe {
namespace {

// Beside dump.json: what a comparison reads of a rank.
constexpr const char* kOtherFiles[] = {"construct.json", "stack.json"};

/// A directory beside the dump may hold tensors, whose values its text does not show.
bool HasDirectory(const std::string& directory) {
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(directory, error)) {
    if (entry.is_directory(error) && !std::filesystem::is_empty(entry.path(), error)) return true;
  }
  return false;
}

using Contents = std::vector<uint32_t>;

/// What dump_summary.json says of its recording goes into `key`: it also names its process, so its bytes differ.
bool StandsForItself(const FilePair& pair, Contents* key) {
  for (const std::string& path : {pair.target, pair.golden}) {
    const std::string directory(DirName(path));
    if (HasDirectory(directory) || !WholenessOf(directory, UINT64_MAX, false).whole()) return true;
    const StatusOr<StepSummary> summary = StepSummary::Read(JoinPath(directory, kSummaryName));
    key->push_back(summary.ok() ? static_cast<uint32_t>(summary->ops) : 0);
  }
  return false;
}

}  // namespace

StatusOr<Replicas> FindReplicas(const std::vector<FilePair>& pairs) {
  std::vector<std::string> dumps;
  for (const FilePair& pair : pairs) dumps.insert(dumps.end(), {pair.target, pair.golden});
  MSP_ASSIGN_OR_RETURN(const Contents of_dumps, ContentNumbers(dumps));
  Replicas out;
  std::map<Contents, std::vector<size_t>> alike;
  for (size_t i = 0; i < pairs.size(); ++i) {
    out.of.push_back(i);
    out.equal.push_back(of_dumps[2 * i] == of_dumps[2 * i + 1]);
    const auto step = static_cast<uint32_t>(pairs[i].step);
    alike[{step, of_dumps[2 * i], of_dumps[2 * i + 1]}].push_back(i);
  }
  std::vector<size_t> candidates;
  std::vector<Contents> keys;  // of the candidates
  for (const auto& [key, same] : alike) {
    if (same.size() == 1) continue;
    for (const size_t i : same) {
      Contents own = key;
      if (StandsForItself(pairs[i], &own)) continue;
      candidates.push_back(i);
      keys.push_back(std::move(own));
    }
  }
  std::vector<std::string> others;
  for (const size_t i : candidates) {
    for (const std::string& path : {pairs[i].target, pairs[i].golden}) {
      for (const char* name : kOtherFiles) others.push_back(JoinPath(DirName(path), name));
    }
  }
  MSP_ASSIGN_OR_RETURN(const Contents of_others, ContentNumbers(others));
  constexpr ptrdiff_t kEach = 2 * std::ssize(kOtherFiles);
  std::map<Contents, size_t> first;
  for (size_t k = 0; k < candidates.size(); ++k) {
    const size_t i = candidates[k];
    Contents& key = keys[k];
    const auto begin = of_others.begin() + static_cast<ptrdiff_t>(k) * kEach;
    key.insert(key.end(), begin, begin + kEach);
    out.of[i] = first.emplace(key, i).first->second;
  }
  return out;
}

}  // namespace msprobe
