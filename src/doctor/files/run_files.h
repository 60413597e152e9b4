// What is left of a training: its files, each recognised by what is in it.
#pragma once

#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "doctor/files/training_log.h"

namespace msprobe {

/// A checkpoint and the step behind which it was written: 0 before the first, -1 where its name does not say.
struct RunCheckpoint {
  std::string path;
  int step = -1;
};

/// Files of one step, by their path within the directory of the step: "rank_0/tokens.npy".
using StepFiles = std::map<std::string, std::string>;

/// What a capture leaves beside the dump of a step in which modules got inputs of another run.
inline constexpr std::string_view kLoadedFile = "msprobe_loaded.json";

struct RunDump {
  std::string path;        // with the directories of the steps
  std::vector<int> steps;  // from 0; -1 for a dump without steps
};

struct RunFiles {
  std::vector<std::string> given;
  std::string directory;  // of the run: what was given first, or where that lies
  std::string side;       // "_a" and "_b" of two runs in one directory: what is recorded of them never collides
  std::vector<std::string> configs;  // scripts, yaml, json, logs with settings, at most one pack
  std::vector<std::string> scripts;  // launch scripts among them
  std::vector<TrainingLog> logs;     // with losses, the longest first
  std::vector<RunCheckpoint> checkpoints;
  std::vector<RunDump> dumps;
  std::vector<RunDump> grafts;                  // recorded with inputs of another run
  std::map<int, StepFiles> batches, gradients;  // by step from 0
  std::vector<std::string> optimizer_records;   // of --save-optimizer and OptimizerRecord
  size_t others = 0;                            // files that are none of these
  std::vector<Message> notes;                   // files that look like one of these and cannot be read

  bool empty() const {
    return configs.empty() && logs.empty() && checkpoints.empty() && dumps.empty() && grafts.empty() &&
           batches.empty() && gradients.empty() && optimizer_records.empty();
  }
};

/// The directory of a step in the last of the dumps that holds it; "" where none does.
std::string StepDirectory(const std::vector<RunDump>& dumps, int step);

/// Looks through files and directories, some levels deep; links to directories are not followed. kBadInput for a path
/// that does not exist, and where nothing is known.
StatusOr<RunFiles> FindRunFiles(const std::vector<std::string>& paths);

}  // namespace msprobe
