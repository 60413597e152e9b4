// What lies below a directory and can be shown: graphs, trends, tables of acc_check, monitored runs, dumps and reports;
// and the way from a name in a request to a file inside that directory.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/status.h"
#include "judgement/report_head.h"

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

/// A report of any tool: its page says what it concludes.
struct FoundReport {
  std::string file;
  FileStamp stamp;
  ReportHead head;
};

/// A run that was recorded: the directory with its steps, or one step or rank that stands alone.
struct FoundDump {
  std::string directory;  ///< "." for the one that is served
  uint64_t steps = 0, ranks = 0;
  int64_t changed = 0;  ///< seconds since 1970
};

struct DirectoryContents {
  std::vector<FoundFile> files;
  std::vector<SkippedFile> skipped;  ///< could not be looked at
  std::vector<std::string> runs;     ///< directories with those of the ranks of a monitored run, "." for this one
  std::vector<FoundReport> reports;
  std::vector<FoundDump> dumps;
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
  /// Sorted by name.
  DirectoryContents List() const;
  /// The real path and stamp of a listed name. kUsage for a name that points outside, kBadInput when there is no such
  /// file.
  StatusOr<std::pair<std::string, FileStamp>> Resolve(std::string_view file) const;
  /// The real path of a page that List() calls a report.
  StatusOr<std::string> ResolveReport(std::string_view file) const;
  /// The real path of a directory that List() calls a run.
  StatusOr<std::string> ResolveRun(std::string_view run) const;

 private:
  StatusOr<std::pair<std::string, FileStamp>> Inside(std::string_view file) const;
  std::string shown_, real_;
  std::string only_;  // the one file, when a file was given
};

}  // namespace msprobe::view
