// Finishing the directories of a run that was killed.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "dump/repair/salvage.h"
#include "dump/step_summary.h"

namespace msprobe {

struct RecoverSettings {
  std::string path;    // a dump, a step or a rank
  std::string output;  // empty: in place
  bool force = false;  // also where the writer may be alive on another host
};

struct FileRecovery {
  enum class State { kWhole, kFinished, kUnreadable };
  std::string name;
  State state = State::kWhole;
  Salvage found;
  std::string kept_as;  // name of the original, where it was replaced
  Message error;        // kUnreadable
};

struct RankRecovery {
  std::string path, output;
  int step = 0;
  std::string rank;
  std::vector<FileRecovery> files;
  std::optional<StepSummary> summary;  // as it was found
  uint64_t ops = 0;                    // in the dump now
  uint64_t ops_missing = 0;            // reported flushed, and not there
  uint64_t without_stack = 0;          // forward ops of the dump; 0 without the file
  uint64_t without_parent = 0;
  uint64_t temporary_files = 0;
  Message refused;  // why it was left alone
  bool changed() const;
  bool complete() const;  // every file is whole now
};

/// In place, each file that is not whole is written anew beside, its original gets the name "NAME.damaged" (a number is
/// added where that is taken), and the new one takes its place. With an output directory all files are copied there,
/// finished, and the originals stay. A second call finds nothing to do. A step whose writer is alive is refused.
StatusOr<std::vector<RankRecovery>> RecoverDump(const RecoverSettings& settings);

Message RecoveryText(const std::vector<RankRecovery>& ranks);
std::string RecoveryJson(const std::vector<RankRecovery>& ranks);

}  // namespace msprobe
