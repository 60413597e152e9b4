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

bool BeginsWithAny(std::string_view name, std::initializer_list<std::string_view> words) {
  return std::any_of(words.begin(), words.end(), [&](std::string_view word) { return StartsWith(name, word); });
}

/// What belongs to a checkpoint or was left there by the training: no evidence of its own.
bool IsOfCheckpoint(std::string_view name, bool directory) {
  if (directory) return BeginsWithAny(name, {"mp_rank_", "iter_", "release", "global_step"});
  if (IsRecordText(name)) return BeginsWithAny(name, {"tokenizer", "vocab", "trainer_state"});
  return EndsWith(name, ".safetensors") || EndsWith(name, ".distcp") ||
         BeginsWithAny(name, {"pytorch_model", "mp_rank_", "zero_pp_rank", "bf16_zero_pp_rank", "optimizer", "optim_",
                              "scheduler", "rng_state", "random_states", "training_args", "scaler"});
}

/// verl keeps a tracker as Megatron does, beside steps that are checkpoints of their own.
bool HoldsSteps(const FileNames& names) {
  return names.contains("latest_checkpointed_iteration.txt") &&
         std::any_of(names.begin(), names.end(), [](const std::string& n) { return StartsWith(n, "global_step_"); });
}

/// What belongs to a dump beside dump.json, or is a result of ours.
bool IsOfDump(std::string_view name) {
  return BeginsWithAny(name, {"dump", "stack.json", "construct.json", "debug.json", "msprobe_rollout."});
}

class EvidenceFinder {
 public:
  EvidenceFinder(RolloutSide side, bool weights_only, SideEvidence* out)
      : side_(side), weights_only_(weights_only), out_(out) {}

  Status Given(const std::string& path) {
    given_ = path;
    if (!PathExists(path)) return Missing(path, "check the path");
    if (!IsDirectory(path)) return LookAtFile(path, true, false);
    return LookIntoDirectory(path, {});
  }

 private:
  void Note(const Message& text) {
    if (out_->notes.size() < kMostFileNotes) out_->notes.push_back(text);
  }

  /// What a directory is of itself, and what is looked for below it.
  struct Place {
    int depth = 0;
    bool checkpoint = false;  // it lies in one: its weights are part of it, or are not those of this side
    bool dump = false;
  };

  Status LookIntoDirectory(const std::string& path, Place place) {
    if (place.depth > kDeepest || seen_ > kMostFiles) return OkStatus();
    MSP_ASSIGN_OR_RETURN(const std::vector<std::string> listed, ListDirectory(path));
    const FileNames names(listed.begin(), listed.end());
    if (names.contains("dump.json")) {
      AddDump(path);
      place.dump = true;
    } else if (IsCheckpointDirectory(path, names) && !HoldsSteps(names)) {
      if (place.checkpoint) NoteOtherWeights(path);
      if (!place.checkpoint) MSP_RETURN_IF_ERROR(AddWeights(path, place.depth == 0));
      if (weights_only_) return OkStatus();
      place.checkpoint = true;
    }
    for (const std::string& name : listed) {
      const std::string inner = JoinPath(path, name);
      if (StartsWith(name, ".") || name == "__pycache__" || StartsWith(name, "msprobe_rollout.")) continue;
      const bool directory = IsDirectory(inner);
      if ((place.dump && IsOfDump(name)) || (place.checkpoint && IsOfCheckpoint(name, directory))) continue;
      if (name == "critic" && names.contains("actor")) {
        Note(Msg("{} is not read: the policy is the actor beside it", inner));
        continue;
      }
      std::error_code error;
      if (directory && std::filesystem::is_symlink(inner, error)) {
        Note(Msg("{} is a link to a directory and is not followed: name where it leads", inner));
        continue;
      }
      if (++seen_ > kMostFiles) {
        Note(Msg("{} holds more files than are looked at; the rest is left out: give the files themselves", path));
        return OkStatus();
      }
      const Place below{place.depth + 1, place.checkpoint, false};
      MSP_RETURN_IF_ERROR(directory ? LookIntoDirectory(inner, below) : LookAtFile(inner, false, place.checkpoint));
    }
    return OkStatus();
  }

  void NoteOtherWeights(const std::string& path) {
    Note(Msg("{} is not read, for it lies in a checkpoint whose weights are: name it if it is meant", path));
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

  /// `beside`: it lies in a checkpoint, whose weights are read already.
  Status LookAtFile(const std::string& path, bool named, bool beside) {
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
    if (!IsWeightFile(name)) return OkStatus();
    if (!beside) return AddWeights(path, named);
    const auto opened = OpenCheckpoint(path);
    if (!opened.ok() || !opened->tensors.empty()) NoteOtherWeights(path);
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
  if (out.empty() && !out.notes.empty()) {
    return BadInput(Msg("{} holds nothing of a trainer or an engine that can be read: {}", paths[0], out.notes[0]));
  }
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
  constexpr int kMostInside = 3;
  std::string_view step = weights.path;  // the step's directory
  while (step.size() > 1 && step.back() == '/') step.remove_suffix(1);
  const std::string_view whole = step;
  const auto names_step = [&](std::string_view name) {
    return LastNumber(name) == weights.step && !Contains(name, "rank");
  };
  for (int i = 0; i < kMostInside && !names_step(BaseName(step)); ++i) step = DirName(step);
  if (!names_step(BaseName(step))) return out;
  // The way in it, which the others have, too: "actor", "actor/huggingface".
  const std::string inner(whole.size() > step.size() ? whole.substr(step.size() + 1) : std::string_view());
  const std::string parent(DirName(step));
  const auto listed = ListDirectory(parent);
  if (!listed.ok()) return out;
  const auto stem = [](std::string_view name) { return name.substr(0, name.find_first_of("0123456789")); };
  for (const std::string& name : *listed) {
    const int number = LastNumber(name);
    if (number < 0 || number >= weights.step || stem(name) != stem(BaseName(step))) continue;
    const std::string path = JoinPath(parent, name);
    out.push_back({inner.empty() ? path : JoinPath(path, inner), number});
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
