#include "monitor/rank_directory.h"

#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "base/text.h"

namespace msprobe {
namespace {

int64_t ChangedAt(const std::string& path) {
  struct stat st {};
  return stat(path.c_str(), &st) == 0 ? st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec : 0;
}

}  // namespace

std::optional<int64_t> RankOfDirectory(std::string_view name) {
  constexpr std::string_view kRank = "-rank";
  constexpr size_t kLongestTime = 20, kRankDigits = 5;
  for (size_t at = name.find(kRank); at != std::string_view::npos && at <= kLongestTime;
       at = name.find(kRank, at + 1)) {
    const std::string_view rest = name.substr(at + kRank.size());
    const std::string_view digits = rest.substr(0, rest.find('-'));
    if (digits.size() < rest.size() && digits.size() <= kRankDigits && IsDigits(digits)) {
      return std::stoll(std::string(digits));
    }
  }
  return std::nullopt;
}

StatusOr<std::vector<RankDirectory>> FindRankDirectories(const std::string& directory) {
  MSP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListDirectory(directory));
  std::vector<RankDirectory> found;
  for (const std::string& name : names) {
    const std::optional<int64_t> rank = RankOfDirectory(name);
    if (!rank) continue;
    std::string path = JoinPath(directory, name);
    if (!IsDirectory(path)) continue;
    const int64_t changed = ChangedAt(path);
    found.push_back({std::move(path), *rank, changed});
  }
  std::stable_sort(found.begin(), found.end(), [](const RankDirectory& a, const RankDirectory& b) {
    return a.rank != b.rank ? a.rank < b.rank : a.changed > b.changed;
  });
  return found;
}

}  // namespace msprobe
