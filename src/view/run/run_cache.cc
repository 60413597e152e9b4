#include "view/run/run_cache.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>

#include "base/file.h"
#include "base/message.h"
#include "monitor/rank_directory.h"
#include "view/run/csv_series.h"

namespace msprobe::view {
namespace {

constexpr size_t kMostKept = 12;
constexpr size_t kMostBytes = size_t{1} << 30;  // of what is kept of steps
constexpr size_t kMostListings = 64;

struct PathStat {
  int64_t changed = 0;  // ns
  uint64_t size = 0;
  bool regular = false;
};

PathStat StatOfPath(const std::string& path) {
  struct stat st {};
  if (stat(path.c_str(), &st) != 0) return {};
  return {st.st_mtim.tv_sec * 1'000'000'000 + st.st_mtim.tv_nsec, static_cast<uint64_t>(st.st_size),
          S_ISREG(st.st_mode)};
}

bool HoldsSeries(const std::string& directory) {
  if (IsRegularFile(JoinPath(directory, "monitor.series"))) return true;
  const auto names = ListDirectory(directory);
  return names.ok() &&
         std::any_of(names->begin(), names->end(), [](const std::string& name) { return !MetricOfCsv(name).empty(); });
}

// Changes with what OpenRank::Follow() does not see: csv files, other directories, another file in the place of one.
uint64_t StampOf(const std::vector<std::string>& directories) {
  uint64_t stamp = directories.size();
  const auto mix = [&](uint64_t v) { stamp = (stamp ^ v) * 0x9E3779B97F4A7C15u; };
  for (const std::string& directory : directories) {
    struct stat st {};
    if (stat(JoinPath(directory, "monitor.series").c_str(), &st) == 0) {
      mix(st.st_ino);
      continue;
    }
    const auto names = ListDirectory(directory);
    if (!names.ok()) continue;
    for (const std::string& name : *names) {
      if (MetricOfCsv(name).empty()) continue;
      const PathStat file = StatOfPath(JoinPath(directory, name));
      mix(file.size);
      mix(static_cast<uint64_t>(file.changed));
    }
  }
  return stamp;
}

}  // namespace

bool IsRunDirectory(const std::string& path) {
  const auto found = FindRankDirectories(path);
  if (found.ok() && !found->empty()) return HoldsSeries(found->front().path) || HoldsSeries(found->back().path);
  return IsRegularFile(JoinPath(path, "monitor.series"));
}

FoundRun RunCache::Describe(const std::string& path) {
  FoundRun run;
  const auto found = FindRankDirectories(path);
  if (!found.ok()) return run;
  int64_t last = -1;
  const auto look = [&](const std::string& directory) {
    const PathStat file = StatOfPath(JoinPath(directory, "monitor.series"));
    run.size += file.size;
    run.changed = std::max(run.changed, file.changed / 1'000'000'000);
  };
  for (const RankDirectory& directory : *found) {
    run.ranks += directory.rank != last ? 1 : 0;
    last = directory.rank;
    run.changed = std::max(run.changed, directory.changed / 1'000'000'000);
    look(directory.path);
  }
  if (found->empty()) {
    run.ranks = 1;
    look(path);
  }
  return run;
}

// Under the mutex.
StatusOr<const RunCache::Listing*> RunCache::List(const std::string& path) {
  const int64_t changed = StatOfPath(path).changed;
  const auto known = listings_.find(path);
  if (known != listings_.end() && known->second.changed == changed) return &known->second;
  MSP_ASSIGN_OR_RETURN(std::vector<RankDirectory> found, FindRankDirectories(path));
  Listing listing;
  listing.changed = changed;
  for (RankDirectory& directory : found) {
    auto& all = listing.directories[directory.rank];
    if (all.empty()) listing.ranks.push_back(directory.rank);
    all.insert(all.begin(), std::move(directory.path));
  }
  if (listing.ranks.empty()) {
    if (!IsRegularFile(JoinPath(path, "monitor.series"))) {
      return BadInput(
          Msg("{} holds no monitored run (no monitor.series): give the directory that msprobe monitor wrote", path));
    }
    listing.ranks.push_back(0);
    listing.directories[0].push_back(path);
  }
  if (listings_.size() >= kMostListings) listings_.clear();
  return &listings_.insert_or_assign(path, std::move(listing)).first->second;
}

StatusOr<std::vector<int64_t>> RunCache::Ranks(const std::string& path) {
  const std::lock_guard lock(mutex_);
  MSP_ASSIGN_OR_RETURN(const Listing* listing, List(path));
  return listing->ranks;
}

StatusOr<int64_t> RunCache::Changed(const std::string& path, int64_t rank) {
  const std::lock_guard lock(mutex_);
  MSP_ASSIGN_OR_RETURN(const Listing* listing, List(path));
  const auto directories = listing->directories.find(rank);
  if (directories == listing->directories.end()) return 0;
  const std::string& newest = directories->second.back();
  const int64_t changed = std::max(StatOfPath(newest).changed, StatOfPath(JoinPath(newest, "monitor.series")).changed);
  return changed / 1'000'000'000;
}

StatusOr<std::shared_ptr<OpenRank>> RunCache::Rank(const std::string& path, int64_t rank) {
  const std::lock_guard lock(mutex_);
  MSP_ASSIGN_OR_RETURN(const Listing* listing, List(path));
  const auto directories = listing->directories.find(rank);
  if (directories == listing->directories.end()) {
    return BadInput(Msg("the run has no rank {}: choose one that it has", rank));
  }
  const std::string key = fmt::format("{}\n{}", rank, path);
  const uint64_t stamp = StampOf(directories->second);
  const auto kept = std::find_if(kept_.begin(), kept_.end(), [&](const Kept& k) { return k.key == key; });
  if (kept != kept_.end() && kept->stamp == stamp) {
    kept_.splice(kept_.begin(), kept_, kept);
    return kept_.front().rank;
  }
  if (kept != kept_.end()) kept_.erase(kept);
  MSP_ASSIGN_OR_RETURN(auto opened, OpenRank::Open(directories->second));
  kept_.push_front({key, stamp, opened});
  size_t bytes = 0;
  for (auto each = kept_.begin(); each != kept_.end();) {
    if (each != kept_.begin()) bytes += each->rank->bytes();
    const bool over = bytes > kMostBytes || static_cast<size_t>(std::distance(kept_.begin(), each)) >= kMostKept;
    each = over && each != kept_.begin() ? kept_.erase(each) : std::next(each);
  }
  return opened;
}

}  // namespace msprobe::view
