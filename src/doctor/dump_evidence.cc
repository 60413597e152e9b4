#include "doctor/dump_evidence.h"

#include <algorithm>
#include <set>

#include "base/file.h"
#include "base/message.h"
#include "base/text.h"
#include "doctor/dump_values.h"
#include "doctor/graft/graft_calls.h"
#include "dump/reader.h"
#include "jobs/run_compare.h"
#include "report/summary.h"

namespace msprobe {
namespace {

/// The index of an op, and how many there are.
struct DumpedOp {
  size_t at = 0, first_backward = 0, last_backward = 0, ops = 0;
  bool found = false, first_input_whole = false;
};

/// "input.1" of {"input_args": [..], "input_kwargs": {..}}.
bool ItemIsWhole(const JsonValue& op, std::string_view item) {
  while (StartsWith(item, ".")) item.remove_prefix(1);
  const auto parts = Split(item, '.');
  if (parts.size() < 2 || parts[0] != "input") return false;
  const JsonValue* args = op.Find("input_args");
  if (!args) args = op.Find("input");
  size_t number = 0;
  if (!IsDigits(parts[1])) return IsWhole(op["input_kwargs"][parts[1]]);
  for (const char c : parts[1]) number = number * 10 + static_cast<size_t>(c - '0');
  return args && IsWhole((*args)[number]);
}

DumpedOp FindPlace(const std::string& dump, const std::string& op, const std::string& item) {
  DumpedOp out;
  const auto file = dump.empty() ? StatusOr<DumpFile>(BadInput(Msg("none"))) : DumpFile::Open(dump);
  if (!file.ok()) return out;
  out.ops = file->ops().size();
  out.first_backward = out.ops;
  for (size_t i = 0; i < out.ops; ++i) {
    if (!IsBackwardOp(file->ops().NameAt(i))) continue;
    out.first_backward = std::min(out.first_backward, i);
    out.last_backward = i;
  }
  const auto at = file->FindOp(op);
  if (!at) return out;
  out.found = true;
  out.at = *at;
  JsonDoc doc;
  if (file->ParseOp(*at, &doc).ok()) out.first_input_whole = ItemIsWhole(doc, item);
  return out;
}

/// Whether an op stands behind the backward pass, where the optimizer is.
bool IsUpdate(const StoryOrigin& origin, const DumpedOp& place) {
  const bool behind = place.found && place.first_backward < place.ops && place.at > place.last_backward;
  return !IsBackwardOp(origin.op) && (behind || !origin.owner.empty());
}

/// The stage of what begins at an op. `place`: in the dump that has the op.
StageId StageOf(const StoryOrigin& origin, const DumpedOp& place, int step, bool before_is_clean) {
  // Code of a backward pass calls functions, too. What differs where a forward pass is computed once more for it agreed
  // when it was computed first.
  const bool within = place.found && place.at > place.first_backward && place.at < place.last_backward;
  const bool backward = IsBackwardOp(origin.op) || within;
  const bool behind = IsUpdate(origin, place);
  if (origin.cause == Cause::kInput && !backward && !behind) {
    const bool first = place.found && place.at == 0;
    if (place.first_input_whole || first) return StageId::kData;
  }
  if (origin.cause == Cause::kWeight && !backward && !behind) {
    if (step <= 0) return StageId::kWeights;
    return step == 1 && before_is_clean ? StageId::kOptimizer : StageId::kTraining;
  }
  if (step > 1) return StageId::kTraining;
  if (behind) return step <= 0 ? StageId::kOptimizer : StageId::kTraining;
  if (step == 1) return StageId::kStep2;
  return backward ? StageId::kLocalNorm : StageId::kStep1Loss;
}

struct StepPair {
  int step;
  std::string a, b;
};

/// Of each step that both recorded; where several dumps hold it, the last one of each.
std::vector<StepPair> PairSteps(const RunFiles& a, const RunFiles& b) {
  std::set<int> steps;
  for (const RunDump& dump : a.dumps) steps.insert(dump.steps.begin(), dump.steps.end());
  std::vector<StepPair> out;
  for (const int step : steps) {
    std::string right = StepDirectory(b.dumps, step);
    if (!right.empty()) out.push_back({step, StepDirectory(a.dumps, step), std::move(right)});
  }
  return out;
}

std::string TaskOf(const std::string& step) {
  const std::string file = FirstDumpFile(step);
  const auto dump = file.empty() ? StatusOr<DumpFile>(BadInput(Msg("none"))) : DumpFile::Open(file);
  return dump.ok() ? std::string(dump->task()) : std::string();
}

std::string FrameworkOf(const std::string& step) {
  const std::string file = FirstDumpFile(step);
  const auto dump = file.empty() ? StatusOr<DumpFile>(BadInput(Msg("none"))) : DumpFile::Open(file);
  return dump.ok() ? std::string(dump->framework()) : std::string();
}

/// Recordings of a run that are not whole and that no comparison opened.
void AddUnopened(const RunFiles& run, DumpSide side, std::vector<RecordingGap>* gaps) {
  std::set<std::string> known;
  for (const RecordingGap& gap : *gaps) known.insert(gap.path);
  for (const RunDump& dump : run.dumps) {
    for (const int step : dump.steps) {
      const auto path = ResolveDumpPath(StepDirectory({dump}, step));
      if (!path.ok()) continue;
      for (const StepDir& directory : path->steps) {
        for (const RankDir& rank : directory.ranks) {
          if (known.insert(JoinPath(rank.path, "dump.json")).second) NoteUnopenedGap(side, rank.path, gaps);
        }
      }
    }
  }
}

/// Step by step, up to the first that differs.
class DumpComparison {
 public:
  DumpComparison(const RunFiles& a, const RunFiles& b, const std::string& output)
      : a_(a), b_(b), steps_(PairSteps(a, b)), output_(output) {}

  StatusOr<DumpEvidence> Run() {
    MSP_ASSIGN_OR_RETURN(DumpEvidence out, RunSteps());
    AddUnopened(a_, DumpSide::kA, &out.gaps);
    AddUnopened(b_, DumpSide::kB, &out.gaps);
    out.whole = out.whole && out.gaps.empty();
    return out;
  }

 private:
  StatusOr<DumpEvidence> RunSteps() {
    out_.bit_equal = !steps_.empty();
    for (size_t i = 0; i < steps_.size(); ++i) {
      MSP_RETURN_IF_ERROR(Compare(steps_[i]));
      if (!compared_) continue;
      if (out_.story.outcome == Story::Outcome::kUnknown && !out_.story.whole()) continue;
      if (out_.story.outcome == Story::Outcome::kUnknown) {
        out_.unknown = true;
        out_.unknown_step = steps_[i].step;
        return std::move(out_);
      }
      if (out_.story.outcome == Story::Outcome::kOrigin && !out_.story.origins.empty() && IsAnswer(i)) {
        return std::move(out_);
      }
      if (suspect_ && suspect_->origin.step < steps_[i].step) Clear();
      out_.clean.push_back(steps_[i].step);
    }
    // An update that changed no weight in an earlier step is code that is written in another way.
    if (suspect_ && !cleared_ && !suspect_->frameworks_differ) {
      out_.origin = std::move(suspect_->origin);
      out_.origin_open = true;
      out_.story = std::move(suspect_->story);
      out_.html = std::move(suspect_->html);
      std::erase(out_.clean, out_.origin->step);
    }
    return std::move(out_);
  }

  /// What an update begins, until the next step says whether it changed a weight: code of two optimizers may differ
  /// and do the same.
  struct Suspect {
    DumpOrigin origin;
    Story story;
    std::string html;
    bool frameworks_differ = false;
  };

  Status Compare(const StepPair& pair) {
    compared_ = false;
    const std::string task_a = TaskOf(pair.a), task_b = TaskOf(pair.b);
    if (task_a == "structure" || task_b == "structure") {
      out_.notes.push_back(
          Msg("{} and {} hold the structure of a model and no values: record statistics", pair.a, pair.b));
      return OkStatus();
    }
    CompareSettings settings;
    settings.target = pair.b;
    settings.golden = pair.a;
    settings.output = JoinPath(output_, pair.step < 0 ? "compare" : "compare_step" + std::to_string(pair.step));
    settings.html = true;
    const auto report = RunCompare(settings);
    compared_ = report.ok();
    if (!compared_) {
      out_.whole = false;
      if (report.status().code() != Code::kBadInput) return report.status();
      out_.notes.push_back(report.status().text());
      return OkStatus();
    }
    out_.seen = true;
    out_.steps.push_back(pair.step);
    out_.first_step = out_.first_step || pair.step <= 0;
    out_.second_step = out_.second_step || pair.step == 1;
    out_.tensors = task_a == "tensor" && task_b == "tensor";
    out_.story = report->story;
    out_.html = report->html;
    out_.whole = out_.whole && out_.story.whole();
    out_.unread += out_.story.unread;
    for (RecordingGap gap : out_.story.gaps) {
      gap.side = gap.side == DumpSide::kGolden ? DumpSide::kA : DumpSide::kB;
      out_.gaps.push_back(std::move(gap));
    }
    out_.bit_equal = out_.bit_equal && out_.story.outcome == Story::Outcome::kEqual;
    if (!out_.given && !out_.bit_equal) {
      if (auto given = FindGivenData(FirstDumpFile(pair.a), FirstDumpFile(pair.b))) {
        out_.given = std::move(given);
        out_.given_step = pair.step;
      }
    }
    return OkStatus();
  }

  /// Whether the origin of step `i` is where the runs part; sets out_.origin.
  bool IsAnswer(size_t i) {
    const StepPair& pair = steps_[i];
    const bool before = std::find(out_.clean.begin(), out_.clean.end(), pair.step - 1) != out_.clean.end();
    const StoryOrigin& origin = out_.story.origins.front();
    const bool target = origin.cause != Cause::kMissingOp;
    const DumpedOp place = FindPlace(FirstDumpFile(target ? pair.b : pair.a), origin.op, origin.item);
    DumpOrigin found{StageOf(origin, place, pair.step, before), pair.step, origin,
                     origin.verdict == RulerVerdict::kSuspicious ? "suspicious" : "bug", false};
    if (origin.cause == Cause::kMissingOp || origin.cause == Cause::kExtraOp) {
      const std::string has = FirstDumpFile(target ? pair.b : pair.a), lacks = FirstDumpFile(target ? pair.a : pair.b);
      const bool here = origin.ranks.empty() || origin.ranks == std::vector<int>{0};
      found.elsewhere = here && HoldsOutputs(has, origin.op, lacks);
    }
    const bool weight = origin.cause == Cause::kWeight && !IsUpdate(origin, place);
    if (suspect_ && suspect_->origin.step == pair.step - 1 && weight && !suspect_->frameworks_differ) {
      out_.origin = std::move(suspect_->origin);
      out_.story = std::move(suspect_->story);
      out_.html = std::move(suspect_->html);
      std::erase(out_.clean, out_.origin->step);
      return true;
    }
    Clear();
    const bool frameworks_differ = FrameworkOf(pair.a) != FrameworkOf(pair.b);
    if (IsUpdate(origin, place)) {
      suspect_ = Suspect{std::move(found), out_.story, out_.html, frameworks_differ};
      return false;
    }
    out_.origin = std::move(found);
    return true;
  }

  void Clear() {
    cleared_ = cleared_ || suspect_;
    suspect_.reset();
  }

  const RunFiles &a_, &b_;
  std::vector<StepPair> steps_;
  std::string output_;
  DumpEvidence out_;
  std::optional<Suspect> suspect_;
  bool cleared_ = false;  // a later step showed that an update gave the same weights
  bool compared_ = false;
};

}  // namespace

StatusOr<DumpEvidence> CompareRunDumps(const RunFiles& a, const RunFiles& b, const std::string& output) {
  return DumpComparison(a, b, output).Run();
}

}  // namespace msprobe
