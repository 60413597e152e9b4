// Matches by hand on disk: NAME.vis.match.json beside NAME.vis.db, which itself is never written, and the configuration
// files in the same directory. Thread-safe.
#pragma once

#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "view/file/directory.h"
#include "view/file/match_edits.h"

namespace msprobe::view {

class MatchStore {
 public:
  struct Loaded {
    std::shared_ptr<const FileEdits> edits;  ///< never null
    std::string revision;                    ///< of the content; "0" without a file
    std::string problem;                     ///< why the file beside is not used
  };
  /// `real` is the real path of a .vis.db.
  Loaded Load(const std::string& real);
  /// Loads, lets `change` change, and writes when it returns true; nothing of this process comes in between.
  Status Change(const std::string& real,
                const std::function<StatusOr<bool>(const std::string& revision, FileEdits* edits)>& change);

 private:
  struct Kept {
    std::string real;
    FileStamp stamp;
    Loaded loaded;
  };
  std::mutex mutex_, changing_;
  std::list<Kept> kept_;  // most recently used first
};

/// Names of the configuration files (*.vis.config) beside a .vis.db, sorted.
std::vector<std::string> ListMatchConfigs(const std::string& real);
/// kUsage for a name that is none of a configuration file, kBadInput when it cannot be read.
StatusOr<std::string> ReadMatchConfig(const std::string& real, std::string_view name);
/// Writes the configuration of a rank at a step under the name that the earlier tool gives it; that name is the result.
StatusOr<std::string> WriteMatchConfig(const std::string& real, int64_t step, int64_t rank, const MatchEdits& edits);

}  // namespace msprobe::view
