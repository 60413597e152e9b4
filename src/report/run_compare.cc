#include "report/run_compare.h"

#include <algorithm>
#include <filesystem>

#include "base/big_array.h"
#include "base/file.h"
#include "base/interrupt.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/custom_metrics.h"
#include "compare/first_glance.h"
#include "compare/postprocess.h"
#include "compare/ruler_pass.h"
#include "diagnose/early_answer.h"
#include "diagnose/replay.h"
#include "diagnose/repro.h"
#include "report/divergence_file.h"
#include "report/html_report.h"
#include "report/mapping_files.h"
#include "report/no_rows.h"
#include "report/pair_voices.h"
#include "report/row_watch.h"
#include "report/step_watch.h"
#include "report/structure_compare.h"
#include "report/table.h"
#include "report/unmatched_table.h"

namespace msprobe {
namespace {

// What a pair takes, at most, beside the size of its two dumps; and all that run side by side.
constexpr uint64_t kMemoryOfOne = 24 << 20, kMemoryOfPairs = 400 << 20;

std::string ResultPath(const CompareSettings& request, const PathPlan& plan, const FilePair& files,
                       const std::string& time) {
  const std::string name = (plan.debug ? "debug_compare_result" : "compare_result") + files.suffix + "_" + time;
  const std::string_view kind = request.diff_analyze ? ".json" : request.xlsx ? ".xlsx" : ".csv";
  return JoinPath(JoinPath(request.output, files.folder), name + std::string(kind));
}

std::string UnmatchedPath(const CompareSettings& request, const FilePair& files, const std::string& time) {
  const std::string name = "unmatched_ops" + files.suffix + "_" + time + (request.xlsx ? ".xlsx" : ".csv");
  return JoinPath(JoinPath(request.output, files.folder), name);
}

TableSpec SpecOf(const CompareSettings& request, const DumpPair& pair, const CustomMetrics* custom, std::string path) {
  TableSpec spec;
  spec.mode = pair.options.mode;
  spec.stacks = request.stacks && pair.stacks ? &*pair.stacks : nullptr;
  spec.highlight = request.highlight;
  spec.path = std::move(path);
  spec.ruler = request.ruler && !request.diff_analyze;
  spec.older = request.older_columns;
  if (custom && pair.tensors) spec.custom = custom->columns();
  return spec;
}

StatusOr<std::unique_ptr<ResultTable>> OpenTable(const CompareSettings& request, const DumpPair& pair,
                                                 const TableSpec& spec) {
  if (!request.xlsx) return CreateCsvTable(spec);
  MSP_ASSIGN_OR_RETURN(const uint64_t rows, CountRows(*pair.target));
  return CreateXlsxTable(spec, rows);
}

void NoteUnmatched(const DumpPair& pair, PairReport* report) {
  for (size_t i = 0; i < pair.plan.golden_of.size() && report->target_only.size() < kNamesShown; ++i) {
    if (pair.plan.golden_of[i] == kNoOp && !pair.plan.Skips(i))
      report->target_only.emplace_back(pair.target->ops().NameAt(i));
  }
  for (const uint32_t g : pair.plan.golden_only) {
    if (report->golden_only.size() == kNamesShown) break;
    report->golden_only.emplace_back(pair.golden->ops().NameAt(g));
  }
  report->golden_only_ops = pair.plan.golden_only.size();
}

/// By what rows are judged beside the two runs.
struct Judging {
  Thresholds thresholds;
  std::vector<FilePair> golden_pairs;  // the golden run against a second one
};

StatusOr<Judging> LoadJudging(const CompareSettings& request) {
  Judging out;
  if (!request.thresholds.empty()) {
    MSP_ASSIGN_OR_RETURN(out.thresholds, ReadThresholds(request.thresholds));
  }
  if (!request.calibrate.empty()) {
    MSP_ASSIGN_OR_RETURN(PathPlan plan, PlanPaths(request.golden, request.calibrate));
    out.golden_pairs = std::move(plan.pairs);
  }
  return out;
}

/// Measures what the ruler needs to know of a pair before its rows are written.
Status PrepareRuler(const CompareSettings& request, const Mapping& mapping, const FilePair& files,
                    const Judging& judging, BigArray<float>* calibrated, RulerContexts* contexts) {
  for (const FilePair& golden : judging.golden_pairs) {
    if (golden.target != files.golden) continue;
    MSP_ASSIGN_OR_RETURN(*calibrated, Calibrate(golden, Mapping()));
  }
  if (calibrated->empty() && !request.calibrate.empty()) {
    return BadInput(request.calibrate + " has no partner of " + files.golden +
                    ": --calibrate takes the same steps and ranks as -gp");
  }
  if (!request.ruler) return OkStatus();
  MSP_ASSIGN_OR_RETURN(*contexts,
                       ContextsOf(files, mapping, judging.thresholds, calibrated->empty() ? nullptr : calibrated));
  return OkStatus();
}

/// What one pair gives: its part of the report, and what it says about who diverged first.
struct PairOutcome {
  Status status;
  PairReport report;
  PairFindings findings;
  ReplayPlan replays;
  SuggestedMapping suggested;  // when it was asked for
};

/// Ops do not pair by their names as they stand.
bool IsMapped(const MappingSettings& m) {
  return m.fuzzy || m.cell || m.api || m.layer || m.data || m.consistent_check;
}

/// What all pairs share while they are compared.
struct PairWork {
  const CompareSettings& request;
  const Mapping& mapping;
  const PathPlan& plan;
  const Judging& judging;
  CustomMetrics* custom;
  const Postprocess* postprocess;
  std::string time;
  PairVoices voices;
  ReplayPlan replays;  // of the pairs that are taken
  MappingSuggestion suggestion;
  bool only_find = false;  // no tables yet: which ops to replay is looked for
  const std::vector<ReplayedOp>* replayed = nullptr;
};

/// What a comparison of models cannot do, or does anyway.
Status CheckStructureOptions(const CompareSettings& r) {
  const std::pair<bool, const char*> values[] = {{r.html, "--html"},
                                                 {r.ruler, "--ruler"},
                                                 {!r.calibrate.empty(), "--calibrate"},
                                                 {r.highlight, "-hl"},
                                                 {r.diff_analyze, "-da"},
                                                 {!r.custom_metric.empty(), "--custom_metric"},
                                                 {!r.repro.empty(), "--repro"},
                                                 {r.replay > 0, "--replay"},
                                                 {r.unmatched, "--unmatched"}};
  for (const auto& [given, name] : values) {
    if (given) return UsageError(std::string(name) + " is about values, but models are compared here: leave it out");
  }
  const MappingSettings& m = r.mapping;
  if (!m.cell && !m.api && !m.data && !m.consistent_check) return OkStatus();
  return UsageError(
      "models are compared by place: of the mappings only -lm/--layer_mapping helps, leave the other out");
}

StatusOr<PairOutcome> CompareModels(size_t index, const DumpPair& pair, const TableSpec& spec, PairWork* work) {
  const CompareSettings& request = work->request;
  const Mapping& mapping = work->mapping;
  MSP_RETURN_IF_ERROR(CheckStructureOptions(request));
  MSP_ASSIGN_OR_RETURN(const Structure target, Structure::Read(*pair.target));
  MSP_ASSIGN_OR_RETURN(const Structure golden, Structure::Read(*pair.golden));
  Progress progress;
  if (request.progress) progress = [&](double share) { work->voices.Progress(index, share); };
  MSP_ASSIGN_OR_RETURN(StructureResult result, CompareStructures(pair, target, golden, mapping.layers, spec, progress));
  PairOutcome out;
  if (!request.suggest_mapping.empty()) {
    out.suggested = SuggestMapping(target, golden, result.summary.diff, mapping.layers);
  }
  out.report.files = work->plan.pairs[index];
  out.report.matching = "place in the model";
  out.report.warnings = pair.warnings;
  out.report.paths = std::move(result.paths);
  out.report.counts = result.counts;
  out.report.golden_only_ops = result.golden_only_calls;
  const auto name = [](const std::string& text, std::vector<std::string>* to) {
    if (!text.empty() && to->size() < kNamesShown) to->push_back(text);
  };
  for (const StructureChange& change : result.summary.diff.changes) {
    if (change.kind == StructureKind::kTargetOnly) name(change.target, &out.report.target_only);
    if (change.kind == StructureKind::kGoldenOnly) name(change.golden, &out.report.golden_only);
  }
  out.report.structure = std::move(result.summary);
  return out;
}

StatusOr<SuggestedMapping> SuggestFrom(const DumpPair& pair, const Mapping& mapping) {
  MSP_ASSIGN_OR_RETURN(const Structure target, Structure::Read(*pair.target));
  MSP_ASSIGN_OR_RETURN(const Structure golden, Structure::Read(*pair.golden));
  return SuggestMapping(target, golden, DiffStructures(target, golden, mapping.layers), mapping.layers);
}

StatusOr<PairOutcome> CompareFiles(size_t index, PairWork* work) {
  // By name: a lambda cannot capture structured bindings in C++20 (clang refuses).
  const CompareSettings& request = work->request;
  const Mapping& mapping = work->mapping;
  const PathPlan& plan = work->plan;
  const Judging& judging = work->judging;
  CustomMetrics* custom = work->custom;
  const std::string& time = work->time;
  const FilePair& files = plan.pairs[index];
  const bool only_find = work->only_find;
  const bool speaks = only_find || !work->replayed;  // once
  if (request.glance && speaks && !request.structure && index == 0 && !IsMapped(request.mapping)) {
    const std::string line = FirstGlance(files);
    if (!line.empty()) work->voices.Glance(index, line);
  }
  MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenPairFiles(files));
  if (request.structure || BothAreStructures(pair)) {
    if (only_find) return PairOutcome();
    return CompareModels(index, pair, SpecOf(request, pair, custom, ResultPath(request, plan, files, time)), work);
  }
  MSP_RETURN_IF_ERROR(MatchDumpPair(files, mapping, custom, &pair, work->postprocess));
  if (request.diff_analyze) UseStatistics(&pair);
  BigArray<float> calibrated;
  RulerContexts contexts;
  MSP_RETURN_IF_ERROR(PrepareRuler(request, mapping, files, judging, &calibrated, &contexts));
  const BigArray<float>* second_golden = calibrated.empty() ? nullptr : &calibrated;
  pair.options.thresholds = &judging.thresholds;
  if (!contexts.empty()) pair.options.contexts = &contexts;
  TableSpec spec = SpecOf(request, pair, custom, ResultPath(request, plan, files, time));
  if (pair.tensors) spec.replays = work->replayed;
  spec.target_dump = files.target;
  std::unique_ptr<ResultTable> table;
  const OpsJson* ops = nullptr;
  if (only_find) {
    table = std::make_unique<NoRows>();
  } else if (request.diff_analyze) {
    MSP_ASSIGN_OR_RETURN(std::unique_ptr<OpsJson> json, OpsJson::Create(spec));
    ops = json.get();
    table = std::move(json);
  } else {
    MSP_ASSIGN_OR_RETURN(table, OpenTable(request, pair, spec));
  }
  std::unique_ptr<RowWatch> watch;
  if ((request.html || request.advisor) && !only_find) {
    const WatchOptions options = request.html ? PageOptions(plan.pairs.size()) : WatchOptions();
    MSP_ASSIGN_OR_RETURN(watch, RowWatch::Create(pair, spec, table->format(), options));
  }
  const auto take = [&](RowBlock&& block) {
    if (request.log && !block.log.empty()) request.log(block.log);
    if (watch) watch->Take(block);
    return table->Take(std::move(block));
  };
  Progress progress;
  if (request.progress) progress = [&](double share) { work->voices.Progress(index, share); };
  EarlyAnswer answer(pair, [&](const FirstDifference& d) { work->voices.Early(index, DifferenceLine(d)); });
  SeenSoFar seen;
  if (request.early && speaks) seen = [&](const OpDistances& so_far) { answer.Seen(so_far); };
  MSP_ASSIGN_OR_RETURN(CompareOutcome outcome, ComparePair(pair, watch ? *watch : table->format(), take, progress, seen,
                                                           request.log != nullptr && !only_find));
  answer.Wait();
  PairOutcome out;
  const OpDistances kept = only_find ? outcome.distances : OpDistances();
  MSP_ASSIGN_OR_RETURN(out.findings.divergence, FindOnRank(pair, files, std::move(outcome.distances), second_golden));
  if (only_find) {
    out.replays = ReplayPlan(request.replay);
    out.replays.Add(pair, files, out.findings.divergence.differences, kept);
  }
  if (ops) {
    MSP_ASSIGN_OR_RETURN(out.findings.suspects, SuspectsOf(*pair.target, files, ops->same()));
  }
  if (only_find) return out;
  PairReport& report = out.report;
  report.differences = out.findings.divergence.differences;
  if (InterruptRequested()) return Interrupted();
  MSP_RETURN_IF_ERROR(table->Commit());
  report.files = files;
  report.mode = pair.options.mode;
  report.fuzzy = pair.plan.options.fuzzy;
  report.matching = pair.plan.how;
  report.paths = table->paths();
  report.counts = outcome.counts;
  report.warnings = pair.warnings;
  if (outcome.custom_failed > 0) {
    report.warnings.push_back("a metric of --custom_metric failed in " + std::to_string(outcome.custom_failed) +
                              " rows; the first: " + outcome.first_custom_failed);
  }
  if (outcome.unread > 0) {
    report.warnings.push_back(
        std::to_string(outcome.unread) +
        " rows could not be compared because a tensor file could not be read or processed; the first: " +
        outcome.first_unread);
  }
  if (!report.differences.warning.empty()) report.warnings.push_back(report.differences.warning);
  NoteUnmatched(pair, &report);
  if (request.mapping.layer || !request.mapping.layer_template.empty()) {
    const std::string end = files.suffix + "_" + time + ".yaml";
    const std::string folder = JoinPath(request.output, files.folder);
    MSP_RETURN_IF_ERROR(WriteMappings(&pair, folder, end, request.plain, &report.mappings));
  }
  if (request.unmatched) {
    MSP_ASSIGN_OR_RETURN(report.unmatched, WriteUnmatched(pair, UnmatchedPath(request, files, time)));
  }
  if (!request.suggest_mapping.empty()) {
    MSP_ASSIGN_OR_RETURN(out.suggested, SuggestFrom(pair, mapping));
  }
  if (request.html) report.page = watch->PageJson();
  if (request.advisor) {
    MSP_ASSIGN_OR_RETURN(
        report.advisor,
        WriteAdvisor(JoinPath(request.output, "advisor" + files.suffix + "_" + time + ".txt"), watch->advice()));
  }
  return out;
}

/// Not every op can be called again; the comparison is complete without.
Status MakeRepro(const CompareSettings& request, const Mapping& mapping, CompareReport* report) {
  if (!report->divergence.found) return OkStatus();
  const StatusOr<Repro> repro = WriteRepro(report->divergence.creator, mapping, request.repro);
  if (!repro.ok() && repro.status().code() != Code::kBadInput) return repro.status();
  report->repro = repro.ok() ? repro->script + (repro->made_up ? " (inputs are made up: the dumps hold no values)" : "")
                             : repro.status().message();
  return OkStatus();
}

/// What the replay says of the op that makes the first difference.
void NoteCreator(CompareReport* report) {
  Origin& creator = report->divergence.creator;
  for (const ReplayedOp& op : report->replays) {
    const bool same = op.target_dump == creator.target_dump && op.name == creator.difference.name;
    if (report->divergence.found && same) creator.replay = op;
  }
}

uint64_t FileSize(const std::string& path) {
  std::error_code error;
  const uint64_t size = std::filesystem::file_size(path, error);
  return error ? 0 : size;
}

/// How many pairs are compared at a time.
size_t SideBySide(const CompareSettings& request, const PathPlan& plan) {
  if (request.log) return 1;  // rows are told as they are compared, in order
  uint64_t largest = 0;
  for (const FilePair& files : plan.pairs) largest = std::max(largest, FileSize(files.target) + FileSize(files.golden));
  return std::max<size_t>(1, kMemoryOfPairs / (kMemoryOfOne + largest));
}

/// `status`, and what is complete nevertheless.
Status Stopped(const Status& status, const CompareReport& report, const PathPlan& plan) {
  if (report.pairs.empty()) return status;
  const std::string what = status.code() == Code::kInterrupted ? "interrupted" : status.message();
  return {status.code(), what + "; the results of the first " + std::to_string(report.pairs.size()) + " of " +
                             std::to_string(plan.pairs.size()) + " pairs are complete in " +
                             std::string(DirName(report.pairs[0].paths[0]))};
}

/// A name that no tensor has is mostly a slip: its matrix changed nothing.
void NoteUnused(const Postprocess& postprocess, PairReport* report) {
  const std::vector<std::string> names = postprocess.Unused();
  if (names.empty()) return;
  std::string text = "--config: no tensor that was compared has the data name " + OneLine(names.front());
  if (names.size() > 1) text += " (and " + std::to_string(names.size() - 1) + " others that the file lists)";
  report->warnings.push_back(text);
}

/// Pairs side by side, as many as there are threads and memory for; the report takes them in their order.
Status ComparePairs(PairWork* work, CompareReport* report) {
  const PathPlan& plan = work->plan;
  const size_t pairs = plan.pairs.size();
  const size_t side_by_side = SideBySide(work->request, plan);
  ThreadBudget budget(pairs, side_by_side);
  StepWatch steps(work->request, work->mapping, report);
  const auto compare = [&](size_t i) -> StatusOr<PairOutcome> {
    const ThreadBudget::Task task(&budget);
    StatusOr<PairOutcome> pair = CompareFiles(i, work);
    work->voices.Ended(i);
    if (pair.ok()) return pair;
    PairOutcome failed;
    failed.status = pair.status();
    return failed;
  };
  const auto take = [&](size_t i, PairOutcome&& pair) -> Status {
    if (pair.status.ok()) {
      report->pairs.push_back(std::move(pair.report));
      work->replays.Merge(pair.replays);
      work->suggestion.Add(pair.suggested);
      return steps.Add(std::move(pair.findings));
    }
    // A bad rank does not hide the others; a full disk or Ctrl-C ends it all.
    const Code code = pair.status.code();
    if (code != Code::kBadInput && code != Code::kUsage) return pair.status;
    report->failures.emplace_back(plan.pairs[i].label, pair.status);
    return OkStatus();
  };
  const size_t window = 4 * side_by_side;
  const Status status = ParallelOrdered<PairOutcome>(pairs, window, compare, take, side_by_side);
  if (!status.ok()) return Stopped(status, *report, plan);
  return report->pairs.empty() ? OkStatus() : steps.EndStep();
}

/// The pairs are compared once without tables, to see which ops are worth it; these are called again in float64, the
/// one that makes the first difference first of all. Then the rows can say it.
StatusOr<std::vector<ReplayedOp>> FindAndReplay(PairWork* work, Replayer* replayer) {
  CompareReport found;
  work->only_find = true;
  MSP_RETURN_IF_ERROR(ComparePairs(work, &found));
  work->only_find = false;
  if (found.pairs.empty()) return std::vector<ReplayedOp>();
  work->replays.AddFirst(found.divergence);
  ReplayProgress progress;
  const CompareSettings& request = work->request;
  if (request.progress) progress = [&](double share) { request.progress("replay", share); };
  return ReplayOps(work->replays, work->mapping, replayer, progress);
}

}  // namespace

StatusOr<CompareReport> RunCompare(const CompareSettings& request) {
  MSP_ASSIGN_OR_RETURN(Mapping mapping, LoadMapping(request.mapping));
  mapping.name_a_line = request.xlsx;
  MSP_ASSIGN_OR_RETURN(PathPlan plan, PlanPaths(request.target, request.golden));
  if (!request.stack_file.empty() && plan.pairs.size() == 1) plan.pairs[0].stack = request.stack_file;
  if (request.html) MSP_RETURN_IF_ERROR(CheckHtmlReport());
  MSP_RETURN_IF_ERROR(MakeOutputDir(request.output));
  SetSpillDirectory(request.output);
  for (const FilePair& files : plan.pairs) {
    if (!files.folder.empty()) MSP_RETURN_IF_ERROR(MakeOutputDir(JoinPath(request.output, files.folder)));
  }
  MSP_ASSIGN_OR_RETURN(const Judging judging, LoadJudging(request));
  std::unique_ptr<CustomMetrics> custom;
  if (!request.custom_metric.empty()) {
    MSP_ASSIGN_OR_RETURN(custom, CustomMetrics::Start(request.custom_metric));
  }
  std::unique_ptr<Postprocess> postprocess;
  if (!request.postprocess.empty()) {
    MSP_ASSIGN_OR_RETURN(postprocess, Postprocess::Read(request.postprocess));
  }
  std::unique_ptr<Replayer> replayer;
  if (request.replay > 0) {
    MSP_ASSIGN_OR_RETURN(replayer, Replayer::Start());
  }
  const std::string time = TimestampNow();
  CompareReport report;
  report.target_only_dirs = plan.target_only;
  report.golden_only_dirs = plan.golden_only;
  PairWork work{request,
                mapping,
                plan,
                judging,
                custom.get(),
                postprocess.get(),
                time,
                PairVoices(request, plan.pairs),
                ReplayPlan(request.replay),
                {}};
  std::vector<ReplayedOp> replays;
  if (replayer) {
    MSP_ASSIGN_OR_RETURN(replays, FindAndReplay(&work, replayer.get()));
    work.replayed = &replays;
  }
  MSP_RETURN_IF_ERROR(ComparePairs(&work, &report));
  if (report.pairs.empty()) return report.failures.front().second;
  if (postprocess) NoteUnused(*postprocess, &report.pairs.front());
  if (!request.suggest_mapping.empty()) {
    MSP_RETURN_IF_ERROR(work.suggestion.Write(request.suggest_mapping, request.target, request.golden));
    report.mapping_path = request.suggest_mapping;
    report.suggested = work.suggestion.sum();
  }
  if (report.pairs.front().structure) return report;
  report.replayed = replayer != nullptr;
  report.replays = std::move(replays);
  NoteCreator(&report);
  if (!request.plain) {
    MSP_ASSIGN_OR_RETURN(report.divergence_path, WriteDivergence(request, report));
  }
  if (!request.repro.empty()) MSP_RETURN_IF_ERROR(MakeRepro(request, mapping, &report));
  if (request.html) {
    const std::string suffix = plan.pairs.size() == 1 ? plan.pairs[0].suffix : "";
    const std::string name = std::string(plan.debug ? "debug_" : "") + "compare_result" + suffix + "_" + time + ".html";
    MSP_RETURN_IF_ERROR(WriteHtmlReport(JoinPath(request.output, name), &report));
  }
  return report;
}

StatusOr<std::string> PlanCompare(const CompareSettings& request) {
  MSP_ASSIGN_OR_RETURN(const Mapping mapping, LoadMapping(request.mapping));
  MSP_ASSIGN_OR_RETURN(const PathPlan plan, PlanPaths(request.target, request.golden));
  std::string out = "{\"paths\": " + PathPlanJson(plan) + ", \"matches\": [";
  for (size_t i = 0; i < plan.pairs.size(); ++i) {
    MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenPairFiles(plan.pairs[i]));
    if (i) out += ", ";
    if (request.structure || BothAreStructures(pair)) {
      MSP_ASSIGN_OR_RETURN(const Structure target, Structure::Read(*pair.target));
      MSP_ASSIGN_OR_RETURN(const Structure golden, Structure::Read(*pair.golden));
      out += StructureDiffJson(DiffStructures(target, golden, mapping.layers));
      continue;
    }
    MSP_RETURN_IF_ERROR(MatchDumpPair(plan.pairs[i], mapping, nullptr, &pair));
    out += MatchPlanJson(pair.plan, OpNames(*pair.target), OpNames(*pair.golden));
  }
  return out + "]}";
}

}  // namespace msprobe
