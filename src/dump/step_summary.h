// dump_summary.json beside dump.json: how far the recorder of a step has come, for whoever looks at the step later or
// has to finish it after a crash.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "base/status.h"

namespace msprobe {

inline constexpr char kSummaryName[] = "dump_summary.json";

struct StepSummary {
  /// "recording" until the step is closed, then "complete", or "incomplete" when something could not be written;
  /// "recovered" by `msprobe recover`.
  std::string state = "recording";
  uint64_t ops = 0;              // reported flushed: they are in dump.json whatever happens to the process
  uint64_t ops_not_written = 0;  // recorded, then lost (disk full, budget)
  uint64_t bytes = 0;            // of the JSON files
  uint64_t tensor_files = 0, tensor_bytes = 0, tensors_not_written = 0;
  std::string ops_stopped, tensors_stopped;  // why nothing more is written; empty: it is
  std::map<std::string, uint64_t> skipped;   // what could not be recorded: kind and how often
  uint64_t ranks = 0;                        // that the training has; 0: not known
  // Who writes, so that nobody repairs a step that is still being written.
  std::string host;
  int64_t pid = 0;
  uint64_t process_start = 0;  // in clock ticks since boot; 0: not known

  /// Indent 1, at most kMostBytes long: texts are cut, and kinds beyond the first few are summed up.
  std::string Json() const;
  static constexpr size_t kMostBytes = 4000;
  static StatusOr<StepSummary> Read(const std::string& path);
};

/// Fills in host, pid and process_start of this process.
void SetWriter(StepSummary* summary);

enum class Writer { kGone, kAlive, kElsewhere };  // kElsewhere: on another host, nobody here can tell
Writer WriterOf(const StepSummary& summary);

/// The file while the step is recorded: written over in place by one call of less than a page, so that it is whole
/// after SIGKILL and needs no space on a full disk.
class SummaryFile {
 public:
  static StatusOr<std::unique_ptr<SummaryFile>> Create(const std::string& path, const StepSummary& summary);
  ~SummaryFile();
  SummaryFile(const SummaryFile&) = delete;
  SummaryFile& operator=(const SummaryFile&) = delete;
  Status Update(const StepSummary& summary);

 private:
  SummaryFile() = default;
  int fd_ = -1;
  std::string path_;
};

}  // namespace msprobe
