// The user's training command, started with capture attached to every Python process below it.
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"

namespace CLI {
class App;
}

namespace msprobe {

/// What python/msprobe/_attach/request.py reads. Empty members are left out.
struct AttachRequest {
  std::string mode = "run";  // run, estimate, certify, resume, parity
  std::string config, task, level, dump_path, step_by = "auto";
  std::string step;  // "0,3-5"
  int steps = 0;     // estimate, certify: then the script is stopped; 0: never
  std::string
      role;  // certify: bare, captured; resume: scout, straight, killed, resumed; parity: ranks, reference, rounded
  // run: directories of batches, gradients and optimizer steps, and how what is replayed fits the script
  std::string save_batches, save_grads, save_optimizer, replay_batches, replay_grads, batches_from, names;
  double loss_scale = 1;
  // parity: sizes of axes ("tp=2,dp=2"), and what a reference takes: records with weights, ranks with batches ("0,2")
  std::string layouts, weights_from, join_ranks;
  bool prints_to_stderr = false;  // what the program prints, because standard output is for the JSON
  bool csv = false;               // monitor: csv files besides the series
  int save_at = 0;                // resume: steps that are done when the script saves
  std::string out;                // estimate, certify: where the processes leave what they found
  bool exchanges() const {
    return !(save_batches.empty() && save_grads.empty() && save_optimizer.empty() && replay_batches.empty() &&
             replay_grads.empty());
  }
};

/// The options that run, estimate and certify share: --config, --task, --level, --dump-path, --step-by.
void AddAttachOptions(CLI::App* command, AttachRequest* request);

/// The paths of the request made absolute, and the program looked at: kUsage when it is missing or cannot be attached
/// to (python -I), kBadInput when the configuration cannot be read.
Status CheckLaunch(AttachRequest* request, const std::vector<std::string>& program);

/// This process becomes the program; returns only when that fails.
Status BecomeProgram(const AttachRequest& request, const std::vector<std::string>& program);

/// Runs the program to its end; the exit code as a shell gives it (128 + signal).
StatusOr<int> RunProgram(const AttachRequest& request, const std::vector<std::string>& program);

/// A directory for what the processes leave, removed with the object.
class WorkDir {
 public:
  static StatusOr<std::unique_ptr<WorkDir>> Create(const std::string& parent);
  WorkDir(const WorkDir&) = delete;
  WorkDir& operator=(const WorkDir&) = delete;
  ~WorkDir();
  const std::string& path() const { return path_; }
  /// Of the files PREFIX*.json what stands for the asterisk, sorted.
  StatusOr<std::vector<std::string>> Results(const std::string& prefix) const;

 private:
  explicit WorkDir(std::string path) : path_(std::move(path)) {}
  std::string path_;
};

void RemoveTree(const std::string& path);

/// The program as one may type it.
std::string ShellText(const std::vector<std::string>& program);

}  // namespace msprobe
