#include "diagnose/overflow/overflow.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>

#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "diagnose/overflow/overflow_describe.h"

namespace msprobe {
namespace {

constexpr size_t kShownAbsorbed = 3;

/// The dumps of a step and what was found in them.
struct Step {
  std::string name;
  std::vector<std::unique_ptr<DumpFile>> dumps;
  std::vector<OverflowRank> ranks;  // in the order of graph.ranks
  CommGraph graph;
  std::vector<OverflowSource> sources;
  std::vector<size_t> first;
  std::vector<OverflowFiles> files;
};

bool HasStatistics(const DumpFile& dump) {
  const std::string_view text = dump.file().text();
  for (const OpSpan& op : dump.ops()) {
    for (const std::string_view key : {"\"Max\"", "\"Min\"", "\"Mean\"", "\"Norm\""}) {
      if (memmem(text.data() + op.offset, op.length, key.data(), key.size())) return true;
    }
  }
  return false;
}

Status CheckDump(const DumpFile& dump) {
  if (dump.task() == "structure") {
    return BadInput(
        Msg("{} is of task structure, which holds no values: dump with task statistics or tensor", dump.path()));
  }
  if (dump.ops().empty() || HasStatistics(dump)) return OkStatus();
  return BadInput(Msg(
      "{} holds no statistics, only checksums: dump with summary_mode statistics or md5, or task tensor", dump.path()));
}

/// Numbers of the ranks: those of the directories; without one the position.
std::vector<int> RankNumbers(const StepDir& dir) {
  std::vector<int> out;
  for (size_t i = 0; i < dir.ranks.size(); ++i) out.push_back(dir.ranks[i].rank.value_or(static_cast<int>(i)));
  return out;
}

struct OpenRank {
  std::unique_ptr<DumpFile> dump;
  OverflowScan scan;
};

StatusOr<OpenRank> Open(const RankDir& dir, bool parallel) {
  const std::string path = IsRegularFile(dir.path) ? dir.path : JoinPath(dir.path, "dump.json");
  OpenRank rank;
  MSP_ASSIGN_OR_RETURN(DumpFile file, DumpFile::Open(path));
  rank.dump = std::make_unique<DumpFile>(std::move(file));
  MSP_RETURN_IF_ERROR(CheckDump(*rank.dump));
  MSP_ASSIGN_OR_RETURN(rank.scan, ScanForOverflow(*rank.dump, parallel));
  return rank;
}

/// What is said of a step beside its findings.
struct StepNotes {
  std::vector<Message> warnings;
  std::vector<RecordingGap> gaps;
  uint64_t left_out = 0;
  std::string first_left_out;
};

/// A rank that cannot be read is left out with a warning, as long as there is another one.
StatusOr<Step> OpenStep(const StepDir& dir, StepNotes* notes) {
  const size_t n = dir.ranks.size();
  std::vector<std::optional<StatusOr<OpenRank>>> opened(n);
  if (n >= static_cast<size_t>(ThreadCount())) {
    MSP_RETURN_IF_ERROR(ParallelFor(n, [&](size_t i) {
      opened[i].emplace(Open(dir.ranks[i], false));
      return OkStatus();
    }));
  } else {
    for (size_t i = 0; i < n; ++i) opened[i].emplace(Open(dir.ranks[i], true));
  }
  Step step;
  step.name = dir.name;
  const std::vector<int> numbers = RankNumbers(dir);
  std::vector<RankDump> dumps;
  for (size_t i = 0; i < n; ++i) {
    const Status& status = opened[i]->status();
    if (!status.ok()) {
      if (status.code() != Code::kBadInput || n == 1) return status;
      notes->warnings.push_back(Msg("{} is left out: {}", dir.ranks[i].name, status.text()));
      if (notes->left_out++ == 0) notes->first_left_out = notes->warnings.back().English();
      continue;
    }
    OpenRank& rank = **opened[i];
    NoteGap(DumpSide::kOnly, *rank.dump, &notes->gaps);
    if (!rank.dump->truncated().empty()) notes->warnings.push_back(rank.dump->truncated());
    if (rank.dump->ops().empty()) notes->warnings.push_back(Msg("{} holds no ops", rank.dump->path()));
    dumps.push_back({numbers[i], rank.dump.get()});
    step.files.emplace_back(numbers[i], rank.dump.get());
    step.ranks.push_back({rank.dump.get(), std::move(rank.scan)});
    step.dumps.push_back(std::move(rank.dump));
  }
  if (step.dumps.empty()) return opened[0]->status();
  MSP_ASSIGN_OR_RETURN(step.graph, ReadCommunication(std::move(dumps)));
  return step;
}

StatusOr<Step> AnalyseStep(const StepDir& dir, StepNotes* notes) {
  MSP_ASSIGN_OR_RETURN(Step step, OpenStep(dir, notes));
  step.sources = FollowOverflow(step.ranks, step.graph);
  step.first = FirstSources(step.sources, step.graph);
  return step;
}

OverflowReport::Phase PhaseOf(const Step& step) {
  const OverflowSource& s = step.sources[step.first[0]];
  const CommRank& rank = step.graph.ranks[s.reader.rank];
  if (s.time.layer == 0) return OverflowReport::Phase::kBefore;
  const bool after = rank.CallFrom(s.reader.op) == rank.calls.size();
  return after ? OverflowReport::Phase::kAfter : OverflowReport::Phase::kDuring;
}

/// What an earlier step says about a parameter that is bad in this one.
Status AddHistory(const Step& step, const StepDir* before, const OverflowOp& op, std::string_view item,
                  OverflowFinding* finding) {
  if (!before) {
    finding->since = {BadSince::Kind::kBeforeStep, step.name, ""};
    return OkStatus();
  }
  finding->since = {BadSince::Kind::kAfterStep, before->name, ""};
  for (const RankDir& rank : before->ranks) {
    if (rank.rank.value_or(0) != op.rank || !IsRegularFile(JoinPath(rank.path, "dump.json"))) continue;
    MSP_ASSIGN_OR_RETURN(const DumpFile dump, DumpFile::Open(JoinPath(rank.path, "dump.json")));
    const auto index = dump.FindOp(op.name);
    if (!index) continue;
    JsonDoc doc;
    MSP_RETURN_IF_ERROR(dump.ParseOp(*index, &doc));
    std::vector<Item> items;
    FlattenOp(op.name, doc, &items);
    for (const Item& i : items) {
      const JsonValue* tensor = i.suffix == item ? TensorOf(i.leaf) : nullptr;
      if (!tensor) continue;
      const bool bad = BadKindsOf(*tensor) != 0;
      finding->since = {bad ? BadSince::Kind::kWasBad : BadSince::Kind::kWasClean, before->name, ItemText(*tensor)};
    }
  }
  return OkStatus();
}

/// The same op on several ranks is one finding: replicas fail alike.
bool AddToTwin(const OverflowStepView& view, const OverflowSource& source, std::vector<OverflowFinding>* findings) {
  if (source.places.size() != 1 || source.kind == OverflowSource::Kind::kUninitialised) return false;
  const OpPlace place = source.places[0];
  const std::string_view name = (*view.ranks)[place.rank].dump->ops()[place.op].name;
  for (OverflowFinding& f : *findings) {
    if (f.kind != source.kind || f.ops[0].name != name || f.absorbed != source.absorbed() ||
        f.unused != source.unused()) {
      continue;
    }
    f.ops.push_back((*view.files)[place.rank].Describe(name));
    f.carriers += source.carriers;
    f.absorbers += source.absorbers;
    return true;
  }
  return false;
}

Status Describe(Step* step, const StepDir* before, OverflowReport* report) {
  const OverflowStepView view{&step->ranks, &step->files, &step->sources};
  std::vector<const OverflowSource*> named;
  for (const size_t i : step->first) {
    named.push_back(&step->sources[i]);
    if (AddToTwin(view, step->sources[i], &report->first)) continue;
    MSP_ASSIGN_OR_RETURN(OverflowFinding finding, DescribeSource(view, step->sources[i]));
    if (finding.kind == OverflowSource::Kind::kParameter)
      MSP_RETURN_IF_ERROR(AddHistory(*step, before, finding.ops[0], finding.item, &finding));
    report->first.push_back(std::move(finding));
  }
  // An infinity that nothing uses leads where nothing else is wrong.
  std::stable_partition(report->first.begin(), report->first.end(), [](const OverflowFinding& f) { return !f.unused; });
  for (size_t i = 0; i < step->sources.size(); ++i) {
    const OverflowSource& s = step->sources[i];
    report->masks += s.kind == OverflowSource::Kind::kMask;
    const bool named_already = std::find(step->first.begin(), step->first.end(), i) != step->first.end();
    if (named_already || !s.absorbed() || s.kind != OverflowSource::Kind::kOp) continue;
    if (AddToTwin(view, s, &report->absorbed) || report->absorbed.size() >= kShownAbsorbed) continue;
    MSP_ASSIGN_OR_RETURN(OverflowFinding finding, DescribeSource(view, s));
    report->absorbed.push_back(std::move(finding));
  }
  if (!named.empty()) {
    MSP_ASSIGN_OR_RETURN(report->nodes, OverflowNodes(view, named));
    report->phase = PhaseOf(*step);
  } else {
    for (uint32_t r = 0; r < step->ranks.size(); ++r) {
      if (step->ranks[r].scan.near.empty()) continue;
      MSP_ASSIGN_OR_RETURN(auto near, NearestTo(view, r, step->ranks[r].scan.near.back().op + 1));
      report->near.insert(report->near.end(), near.begin(), near.end());
    }
  }
  for (OverflowFiles& files : step->files) {
    report->warnings.insert(report->warnings.end(), files.warnings()->begin(), files.warnings()->end());
  }
  return OkStatus();
}

/// A path as steps; a file is a rank of its own.
StatusOr<std::vector<StepDir>> StepsOf(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(DumpPath resolved, ResolveDumpPath(path));
  if (resolved.kind != PathKind::kFile) return std::move(resolved.steps);
  if (BaseName(path) == "debug.json") {
    return BadInput(
        Msg("{} is a debug.json, which has no ops: give the dump.json, rank, step or dump directory", path));
  }
  StepDir step;
  RankDir rank;
  const std::string directory(DirName(path));
  if (StatusOr<DumpPath> around = ResolveDumpPath(directory.empty() ? "." : directory);
      around.ok() && around->kind == PathKind::kRank) {
    step = around->steps[0];
    rank = step.ranks[0];
  }
  rank.path = path;
  step.ranks = {rank};
  return std::vector<StepDir>{step};
}

/// The step before one that was given alone, where the dump around it is there.
std::optional<StepDir> StepBefore(const StepDir& step) {
  if (step.name.empty()) return std::nullopt;
  const StatusOr<DumpPath> around = ResolveDumpPath(JoinPath(step.path, ".."));
  if (!around.ok() || around->kind != PathKind::kDump) return std::nullopt;
  std::optional<StepDir> before;
  for (const StepDir& s : around->steps) {
    if (s.step < step.step) before = s;
  }
  return before;
}

void AddNotes(StepNotes notes, OverflowReport* report) {
  report->warnings.insert(report->warnings.end(), notes.warnings.begin(), notes.warnings.end());
  report->gaps.insert(report->gaps.end(), notes.gaps.begin(), notes.gaps.end());
  if (report->left_out == 0) report->first_left_out = std::move(notes.first_left_out);
  report->left_out += notes.left_out;
}

}  // namespace

StatusOr<OverflowReport> FindOverflow(const std::string& path, const RankChoice& ranks) {
  DumpPath chosen{PathKind::kDump, path, {}};
  MSP_ASSIGN_OR_RETURN(chosen.steps, StepsOf(path));
  MSP_RETURN_IF_ERROR(ranks.Apply(&chosen));
  const std::vector<StepDir>& steps = chosen.steps;
  const std::optional<StepDir> outside = StepBefore(steps[0]);
  const auto before = [&](size_t i) { return i > 0 ? &steps[i - 1] : outside ? &*outside : nullptr; };
  OverflowReport report;
  report.input = path;
  size_t absorbed_only = steps.size();  // the first step with something to name, although nothing of it lasts
  for (size_t i = 0; i < steps.size(); ++i) {
    StepNotes notes;
    MSP_ASSIGN_OR_RETURN(Step step, AnalyseStep(steps[i], &notes));
    ++report.steps;
    report.ranks = std::max(report.ranks, step.ranks.size());
    AddNotes(std::move(notes), &report);
    const bool lasts = !step.first.empty() && !step.sources[step.first[0]].absorbed();
    if (!step.first.empty()) absorbed_only = std::min(absorbed_only, i);
    const bool last = i + 1 == steps.size();
    if (!lasts && !(last && absorbed_only == steps.size()) && !(last && absorbed_only == i)) continue;
    report.step = step.name;
    MSP_RETURN_IF_ERROR(Describe(&step, before(i), &report));
    for (size_t rest = i + 1; rest < steps.size(); ++rest) {
      for (const RankDir& rank : steps[rest].ranks) NoteUnopenedGap(DumpSide::kOnly, rank.path, &report.gaps);
    }
    return report;
  }
  if (absorbed_only == steps.size()) return report;
  StepNotes known;
  MSP_ASSIGN_OR_RETURN(Step step, AnalyseStep(steps[absorbed_only], &known));
  report.step = step.name;
  MSP_RETURN_IF_ERROR(Describe(&step, before(absorbed_only), &report));
  return report;
}

}  // namespace msprobe
