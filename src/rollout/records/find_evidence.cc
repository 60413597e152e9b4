#include "rollout/records/find_evidence.h"

#include <algorithm>
#include <filesystem>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "rollout/records/read_records.h"
#include "rollout/records/record_value.h"
#include "weights/open_checkpoint.h"
#include "weights/places/checkpoint_places.h"

namespace msprobe {
namespace {

constexpr int kDeepest = 6;
constexpr size_t kMostBeside = 4;
constexpr size_t kMostFiles = 20'000, kMostFileNotes = 50;

bool IsTorchFile(std::string_view name) {
  return EndsWith(name, ".pt") || EndsWith(name, ".pth") || EndsWith(name, ".bin");
}
bool IsRecordText(std::string_view name) { return EndsWith(name, ".jsonl") || EndsWith(name, ".json"); }
bool IsWeightFile(std::string_view name) {
  return EndsWith(name, ".safetensors") || EndsWith(name, ".ckpt") || EndsWith(name, ".npz") || IsTorchFile(name);
}

class EvidenceFinder {
 public:
  EvidenceFinder(RolloutSide side, bool weights_only, SideEvidence* out)
      : side_(side), weights_only_(weights_only), out_(out) {}

  Status Given(const std::string& path) {
    given_ = path;
    if (!PathExists(path)) return Missing(path, "check the path");
    if (!IsDirectory(path)) return LookAtFile(path, true);
    return LookIntoDirectory(path, 0);
  }

 private:
  void Note(const Message& text) {
    if (out_->notes.size() < kMostFileNotes) out_->notes.push_back(text);
  }

  Status LookIntoDirectory(const std::string& path, int depth) {
    if (depth > kDeepest || seen_ > kMostFiles) return OkStatus();
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> listed, ListDirectory(path));
    const FileNames names(listed.begin(), listed.end());
    if (names.contains("msprobe_rollout.json")) return OkStatus();  // a result of ours
    if (names.contains("dump.json")) {
      AddDump(path);
      return OkStatus();
    }
    if (IsCheckpointDirectory(path, names)) return AddWeights(path, depth == 0);
    for (const std::string& name : listed) {
      const std::string inner = JoinPath(path, name);
      if (StartsWith(name, ".") || name == "__pycache__") continue;
      std::error_code error;
      if (std::filesystem::is_symlink(inner, error) && IsDirectory(inner)) {
        Note(Msg("{} is a link to a directory and is not followed: name where it leads", inner));
        continue;
      }
      if (++seen_ > kMostFiles) {
        Note(Msg("{} holds more files than are looked at; the rest is left out: give the files themselves", path));
        return OkStatus();
      }
      MSP_RETURN_IF_ERROR(IsDirectory(inner) ? LookIntoDirectory(inner, depth + 1) : LookAtFile(inner, false));
    }
    return OkStatus();
  }

  void AddDump(const std::string& rank_directory) {
    if (weights_only_) return;
    SideDump dump{JoinPath(rank_directory, "dump.json"), -1, 0};
    const std::string_view name = BaseName(rank_directory), above = BaseName(DirName(rank_directory));
    if (StartsWith(name, "rank")) dump.rank = std::max(0, LastNumber(name));
    for (const std::string_view word : {name, above}) {
      if (StartsWith(word, "step")) dump.step = LastNumber(word);
    }
    out_->dumps.push_back(std::move(dump));
  }

  /// `named`: what cannot be read is an error, not a note.
  Status AddWeights(const std::string& path, bool named) {
    const auto opened = OpenCheckpoint(path);
    if (opened.ok() && !opened->tensors.empty()) {
      out_->weights.push_back({path, StepOfCheckpoint(path, given_), false});
      return OkStatus();
    }
    if (!opened.ok() && named) return opened.status();
    if (!opened.ok()) Note(opened.status().text());
    return OkStatus();
  }

  /// Whether the file holds records. Most JSON files do not.
  StatusOr<bool> AddRecords(const std::string& path) {
    RolloutRecords found;
    size_t left = numbers_;
    const Status status = ReadRecordFile(path, side_, &left, &found);
    if (!status.ok()) return status;
    if (found.requests.empty()) return false;
    numbers_ = left;
    if (!out_->records) out_->records.emplace();
    RolloutRecords& all = *out_->records;
    if (all.path.empty()) all.path = path;
    if (all.program.empty()) all.program = found.program;
    std::move(found.requests.begin(), found.requests.end(), std::back_inserter(all.requests));
    all.padding.insert(found.padding.begin(), found.padding.end());
    all.notes.insert(all.notes.end(), found.notes.begin(), found.notes.end());
    return true;
  }

  Status LookAtFile(const std::string& path, bool named) {
    const std::string_view name = BaseName(path);
    if (name == "dump.json") {
      AddDump(std::string(DirName(path)));
      return OkStatus();
    }
    if (!weights_only_ && (IsRecordText(name) || IsTorchFile(name))) {
      const auto records = AddRecords(path);
      if (records.ok() && *records) return OkStatus();
      if (!records.ok() && IsRecordText(name)) {
        if (named) return records.status();
        Note(records.status().text());
        return OkStatus();
      }
    }
    if (IsWeightFile(name)) return AddWeights(path, named);
    return OkStatus();
  }

  const RolloutSide side_;
  const bool weights_only_;
  SideEvidence* out_;
  std::string given_;
  size_t seen_ = 0, numbers_ = kMostRecordNumbers;
};

Status Find(const std::vector<std::string>& paths, RolloutSide side, bool weights_only, SideEvidence* out) {
  out->given = paths;
  EvidenceFinder finder(side, weights_only, out);
  for (const std::string& path : paths) MSP_RETURN_IF_ERROR(finder.Given(path));
  std::stable_sort(out->weights.begin(), out->weights.end(),
                   [](const SideWeights& x, const SideWeights& y) { return x.step < y.step; });
  std::stable_sort(out->dumps.begin(), out->dumps.end(), [](const SideDump& x, const SideDump& y) {
    return x.step != y.step ? x.step < y.step : x.rank < y.rank;
  });
  return OkStatus();
}

}  // namespace

StatusOr<SideEvidence> FindSideEvidence(const std::vector<std::string>& paths, RolloutSide side) {
  SideEvidence out;
  MSP_RETURN_IF_ERROR(Find(paths, side, false, &out));
  if (out.empty()) {
    return BadInput(
        Msg("{} holds nothing that is known of a trainer or an engine: give records with ids and "
            "log-probabilities, weights or dumps, or the directory where they are",
            paths[0]));
  }
  return out;
}

StatusOr<std::vector<SideWeights>> FindWeights(const std::vector<std::string>& paths) {
  SideEvidence out;
  MSP_RETURN_IF_ERROR(Find(paths, RolloutSide::kTrain, true, &out));
  if (!paths.empty() && out.weights.empty()) {
    return BadInput(Msg("{} holds no weights: give the checkpoint of a model", paths[0]));
  }
  return std::move(out.weights);
}

std::vector<SideWeights> FindStepsBeside(const SideWeights& weights) {
  std::vector<SideWeights> out;
  if (weights.step < 0 || weights.dump || weights.fingerprint) return out;
  std::string_view step = weights.path, inner;  // the step's directory, and the name in it: "actor"
  while (step.size() > 1 && step.back() == '/') step.remove_suffix(1);
  if (LastNumber(BaseName(step)) != weights.step) inner = BaseName(step), step = DirName(step);
  if (LastNumber(BaseName(step)) != weights.step) return out;
  const std::string parent(DirName(step));
  const auto listed = ListDirectory(parent);
  if (!listed.ok()) return out;
  const auto stem = [](std::string_view name) { return name.substr(0, name.find_first_of("0123456789")); };
  for (const std::string& name : *listed) {
    const int number = LastNumber(name);
    if (number < 0 || number >= weights.step || stem(name) != stem(BaseName(step))) continue;
    const std::string path = JoinPath(parent, name);
    out.push_back({inner.empty() ? path : JoinPath(path, inner), number, false});
  }
  std::sort(out.begin(), out.end(), [](const SideWeights& x, const SideWeights& y) { return x.step > y.step; });
  size_t kept = 0;
  for (size_t i = 0; i < out.size() && kept < kMostBeside; ++i) {
    if (!PathExists(out[i].path)) continue;
    const auto opened = OpenCheckpoint(out[i].path);
    if (opened.ok() && !opened->tensors.empty()) std::swap(out[kept++], out[i]);
  }
  out.resize(kept);
  std::reverse(out.begin(), out.end());
  return out;
}

}  // namespace msprobe
