// Monitored runs that are looked at: their ranks, and those kept open. Thread-safe.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "view/run/open_rank.h"

namespace msprobe::view {

struct FoundRun {
  std::string directory;  // as it is named in requests; "." is the one that is served
  uint64_t ranks = 0, size = 0;
  int64_t changed = 0;  // seconds since 1970
};

/// True when `path` holds directories of ranks, or is one.
bool IsRunDirectory(const std::string& path);

class RunCache {
 public:
  /// The ranks of the run at `path`.
  StatusOr<std::vector<int64_t>> Ranks(const std::string& path);
  StatusOr<std::shared_ptr<OpenRank>> Rank(const std::string& path, int64_t rank);
  /// When the files of a rank changed, in seconds since 1970.
  StatusOr<int64_t> Changed(const std::string& path, int64_t rank);
  /// How many ranks the run has, how large it is and when it changed.
  static FoundRun Describe(const std::string& path);

 private:
  struct Kept {
    std::string key;
    uint64_t stamp;  // of its directories, and of csv files in them
    std::shared_ptr<OpenRank> rank;
  };
  struct Listing {
    int64_t changed = 0;
    std::unordered_map<int64_t, std::vector<std::string>> directories;  // of a rank, the oldest first
    std::vector<int64_t> ranks;
  };
  StatusOr<const Listing*> List(const std::string& path);

  std::mutex mutex_;
  std::unordered_map<std::string, Listing> listings_;
  std::list<Kept> kept_;
};

}  // namespace msprobe::view
