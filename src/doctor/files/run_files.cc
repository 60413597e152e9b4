#include "doctor/files/run_files.h"

#include <algorithm>
#include <array>
#include <filesystem>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "config/read_configuration.h"
#include "dump/reader.h"
#include "weights/open_checkpoint.h"
#include "weights/places/checkpoint_places.h"

namespace msprobe {
namespace {

constexpr int kDeepest = 6;
constexpr size_t kMostFiles = 20'000;
constexpr size_t kLongestConfig = size_t{16} << 20;

bool EndsWithOneOf(std::string_view name, std::initializer_list<std::string_view> endings) {
  return std::any_of(endings.begin(), endings.end(), [&](std::string_view ending) { return EndsWith(name, ending); });
}

/// "step_12", "step12"; -1 for anything else.
int StepOfDirectory(std::string_view name) {
  if (!StartsWith(name, "step")) return -1;
  name.remove_prefix(4);
  if (StartsWith(name, "_")) name.remove_prefix(1);
  return IsDigits(name) ? LastNumber(name) : -1;
}

bool IsRankDirectory(std::string_view name) {
  if (!StartsWith(name, "rank") && !StartsWith(name, "proc")) return false;
  name.remove_prefix(4);
  if (StartsWith(name, "_")) name.remove_prefix(1);
  return name.empty() || IsDigits(name);
}

class RunFileFinder {
 public:
  explicit RunFileFinder(RunFiles* out) : out_(out) {}

  void Look(const std::string& path, int depth) {
    if (IsDirectory(path))
      LookIntoDirectory(path, depth);
    else
      LookAtFile(path);
  }
  void SetGiven(const std::string& path) { given_ = path; }

 private:
  void Note(const Message& text) {
    if (out_->notes.size() < 50) out_->notes.push_back(text);
  }

  void LookIntoDirectory(const std::string& path, int depth) {
    if (depth > kDeepest || seen_ > kMostFiles) return;
    const auto listed = ListDirectory(path);
    if (!listed.ok()) return Note(listed.status().text());
    const FileNames names(listed->begin(), listed->end());
    if (names.contains("msprobe_doctor.json")) return;  // a result of ours
    if (names.contains("dump.json")) return AddDump(path);
    if (names.contains("optimizer.json") && names.contains("before.safetensors")) return AddOptimizerRecord(path);
    if (IsCheckpointDirectory(path, names)) {
      if (AddCheckpoint(path) && names.contains("config.json")) AddConfig(JoinPath(path, "config.json"));
      return;
    }
    for (const std::string& name : *listed) {
      const std::string inner = JoinPath(path, name);
      if (StartsWith(name, ".") || name == "__pycache__") continue;
      std::error_code error;
      if (std::filesystem::is_symlink(inner, error) && IsDirectory(inner)) continue;
      if (++seen_ > kMostFiles) {
        return Note(
            Msg("{} holds more files than are looked at; the rest is left out: give the files themselves", path));
      }
      Look(inner, depth + 1);
    }
  }

  /// `step` is "RECORD/rank0/optimizer0/step0".
  void AddOptimizerRecord(const std::string& step) {
    const std::string record(DirName(DirName(DirName(step))));
    std::vector<std::string>& known = out_->optimizer_records;
    if (std::find(known.begin(), known.end(), record) == known.end()) known.push_back(record);
  }

  bool AddCheckpoint(const std::string& path) {
    const auto opened = OpenCheckpoint(path);
    if (!opened.ok()) {
      Note(opened.status().text());
      return false;
    }
    if (opened->tensors.empty()) return false;
    out_->checkpoints.push_back({path, StepOfCheckpoint(path, given_)});
    return true;
  }

  void AddDump(std::string_view rank) {
    std::string_view step = IsRankDirectory(BaseName(rank)) ? DirName(rank) : rank;
    const int number = StepOfDirectory(BaseName(step));
    const std::string root(number >= 0 ? DirName(step) : step);
    std::vector<RunDump>& dumps = PathExists(JoinPath(rank, kLoadedFile)) ? out_->grafts : out_->dumps;
    auto found = std::find_if(dumps.begin(), dumps.end(), [&](const RunDump& dump) { return dump.path == root; });
    if (found == dumps.end()) found = dumps.insert(found, RunDump{root, {}});
    if (std::find(found->steps.begin(), found->steps.end(), number) == found->steps.end()) {
      found->steps.push_back(number);
      std::sort(found->steps.begin(), found->steps.end());
    }
  }

  /// A tensor of a step: below "step_N" of a directory of batches or gradients.
  bool AddStepFile(const std::string& path) {
    std::string_view directory = DirName(path);
    for (int up = 0; up < 3 && !directory.empty() && directory != "/"; ++up, directory = DirName(directory)) {
      const int step = StepOfDirectory(BaseName(directory));
      if (step < 0) continue;
      const std::string_view root = DirName(directory);
      const bool gradients = Contains(BaseName(root), "grad") || StartsWith(BaseName(path), "grad");
      const std::string name = path.substr(directory.size() + 1);
      (gradients ? out_->gradients : out_->batches)[step].emplace(name, path);
      return true;
    }
    return false;
  }

  void AddConfig(const std::string& path) {
    if (EndsWith(path, ".zip")) {
      const bool packed = std::any_of(out_->configs.begin(), out_->configs.end(),
                                      [](const std::string& other) { return EndsWith(other, ".zip"); });
      if (packed)
        Note(Msg("{} is a second pack of one run and is left out: give only one of them", path));
      else
        out_->configs.push_back(path);
      return;
    }
    Configuration one;
    const Status status = AddFile(path, &one);
    if (!status.ok()) {
      if (!IsLog(path)) Note(status.text());
      return;
    }
    if (one.sources.empty() && one.environment.empty()) return;
    out_->configs.push_back(path);
    if (EndsWithOneOf(path, {".sh", ".bash"})) out_->scripts.push_back(path);
  }

  static bool IsLog(std::string_view path) { return EndsWithOneOf(path, {".log", ".txt", ".out"}); }

  void LookAtFile(const std::string& path) {
    const std::string_view name = BaseName(path);
    std::error_code error;
    const auto size = std::filesystem::file_size(path, error);
    if (error) return Note(Msg("{} cannot be read: check its permissions", path));
    if (name == "dump.json") return AddDump(DirName(path));
    if (EndsWithOneOf(name, {".npy", ".pt", ".npz", ".safetensors"}) && AddStepFile(path)) return;
    if (EndsWithOneOf(name, {".safetensors", ".ckpt", ".pt", ".pth", ".bin", ".npz"})) {
      if (!AddCheckpoint(path)) ++out_->others;
      return;
    }
    const bool curves = EndsWithOneOf(name, {".csv", ".jsonl", ".trend.db"}) || name == "trainer_state.json" ||
                        StartsWith(name, "events.out.tfevents.");
    if (curves || IsLog(name)) {
      const bool frozen = AddLog(path);
      if (IsLog(name) && !frozen) AddConfig(path);
      return;
    }
    if (EndsWithOneOf(name, {".sh", ".bash", ".yaml", ".yml", ".json", ".zip"}) && size <= kLongestConfig) {
      return AddConfig(path);
    }
    ++out_->others;
  }

  /// Files without a loss are none. True for the log of a run with a learning rate of 0, whose settings are not those
  /// of the training.
  bool AddLog(const std::string& path) {
    auto log = ReadTrainingLog(path);
    if (!log.ok() || log->steps.empty()) return false;
    out_->logs.push_back(*std::move(log));
    return IsFrozen(out_->logs.back());
  }

  RunFiles* out_;
  std::string given_;
  size_t seen_ = 0;
};

}  // namespace

std::string StepDirectory(const std::vector<RunDump>& dumps, int step) {
  std::string out;
  for (const RunDump& dump : dumps) {
    if (std::find(dump.steps.begin(), dump.steps.end(), step) == dump.steps.end()) continue;
    out = step < 0 ? dump.path : JoinPath(dump.path, "step" + std::to_string(step));
  }
  return out;
}

StatusOr<RunFiles> FindRunFiles(const std::vector<std::string>& paths) {
  RunFiles out;
  out.given = paths;
  RunFileFinder finder(&out);
  for (const std::string& path : paths) {
    if (!PathExists(path)) return Missing(path, "check the path");
    finder.SetGiven(path);
    finder.Look(path, 0);
  }
  out.directory = IsDirectory(paths[0]) ? paths[0] : std::string(DirName(paths[0]));
  if (out.directory.empty()) out.directory = ".";
  std::stable_sort(out.logs.begin(), out.logs.end(),
                   [](const TrainingLog& x, const TrainingLog& y) { return x.steps.size() > y.steps.size(); });
  std::stable_sort(out.checkpoints.begin(), out.checkpoints.end(),
                   [](const RunCheckpoint& x, const RunCheckpoint& y) { return x.step < y.step; });
  if (out.empty()) {
    return BadInput(
        Msg("{} holds nothing that is known of a training: give launch scripts, configurations, logs with losses, "
            "checkpoints, batches or dumps, or the directory where they are",
            paths[0]));
  }
  return out;
}

}  // namespace msprobe
