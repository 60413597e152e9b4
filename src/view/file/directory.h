// The .vis.db and .trend.db files and the tables of acc_check below a directory, and the way from a name in a request
// to a file inside that directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"

namespace msprobe::view {

/// Tells one content of a path from another without reading it.
struct FileStamp {
  uint64_t device = 0, inode = 0, size = 0;
  int64_t mtime_s = 0, mtime_ns = 0;
  bool operator==(const FileStamp&) const = default;
};

struct FoundFile {
  std::string file;  ///< relative to the directory, '/' between parts
  FileStamp stamp;
};

struct SkippedFile {
  std::string file;
  Message reason;
};

/// "x.trend.db": statistics over steps, no graph.
bool IsTrendName(std::string_view file);

/// False when there is no regular file of this name.
bool ReadStamp(const std::string& path, FileStamp* stamp);

class GraphDirectory {
 public:
  /// `path` is a directory or one such file.
  static StatusOr<GraphDirectory> Open(const std::string& path);
  /// As the user gave it.
  const std::string& shown() const { return shown_; }
  const std::string& real() const { return real_; }
  /// A file was given, not a directory.
  bool single() const { return !only_.empty(); }
  /// Sorted by name. What could not be looked at is in `skipped`. `runs`: directories with those of the ranks of a
  /// monitored run, "." for this one.
  void List(std::vector<FoundFile>* files, std::vector<SkippedFile>* skipped,
            std::vector<std::string>* runs = nullptr) const;
  /// The real path and stamp of a listed name. kUsage for a name that points outside, kBadInput when there is no such
  /// file.
  StatusOr<std::pair<std::string, FileStamp>> Resolve(std::string_view file) const;
  /// The real path of a directory that List() calls a run.
  StatusOr<std::string> ResolveRun(std::string_view run) const;

 private:
  std::string shown_, real_;
  std::string only_;  // the one file, when a file was given
};

}  // namespace msprobe::view
