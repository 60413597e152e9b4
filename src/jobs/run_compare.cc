#include "jobs/run_compare.h"

#include "base/big_array.h"
#include "base/file.h"
#include "base/message.h"
#include "base/parallel.h"
#include "base/text.h"
#include "compare/values/custom_metrics.h"
#include "compare/values/postprocess.h"
#include "diagnose/replay/repro.h"
#include "dump/output_bound.h"
#include "jobs/differing.h"
#include "jobs/pair_job.h"
#include "jobs/table_size.h"
#include "json/writer.h"
#include "match/implementations.h"
#include "report/divergence_file.h"
#include "report/html_report.h"
#include "report/report_page.h"

namespace msprobe {
namespace {

/// Not every op can be called again; the comparison is complete without.
Status MakeRepro(const CompareSettings& request, const Mapping& mapping, CompareReport* report) {
  if (!report->divergence.found) return OkStatus();
  const StatusOr<Repro> repro = WriteRepro(report->divergence.creator, mapping, request.repro);
  if (!repro.ok() && repro.status().code() != Code::kBadInput) return repro.status();
  report->repro =
      repro.ok() ? ReproReport{repro->script, repro->made_up, {}} : ReproReport{{}, false, repro.status().text()};
  return OkStatus();
}

/// Pairs that could not be compared are a part that was not seen; models have no findings that would say what is cut.
void NoteWholeness(CompareReport* report) {
  Story& story = report->story;
  if (!report->failures.empty()) {
    const auto& [label, status] = report->failures.front();
    story.not_compared = report->failures.size();
    story.first_not_compared = label + ": " + status.message();
  }
  if (report->pairs.front().structure) {
    for (const PairReport& pair : report->pairs)
      story.gaps.insert(story.gaps.end(), pair.gaps.begin(), pair.gaps.end());
  }
  story.Weigh();
}

/// What the replay says of the op that makes the first difference.
void NoteCreator(CompareReport* report) {
  Origin& creator = report->divergence.creator;
  for (const ReplayedOp& op : report->replays) {
    const bool same = op.target_dump == creator.target_dump && op.name == creator.difference.name;
    if (!report->divergence.found || !same) continue;
    creator.replay = op;
    report->story.origins.front().replay = ReplayText(op).English();
  }
}

/// Says what a table for each of many pairs will take, and stops before the first where it is too much.
Status CheckTables(const CompareSettings& request, const PathPlan& plan) {
  constexpr uint64_t kMostGrowth = 8;  // of a table over its dump
  uint64_t dumps = 0;
  for (const FilePair& pair : plan.pairs) dumps += FileBytes(pair.target);
  const bool many = plan.pairs.size() >= kManyRanks;
  if (!many && (request.out_limit == 0 || dumps * kMostGrowth <= request.out_limit)) return OkStatus();
  MSP_ASSIGN_OR_RETURN(const uint64_t bytes, EstimateTables(request, plan));
  MSP_RETURN_IF_ERROR(CheckOutput(bytes, plan.pairs.size(), request.out_limit,
                                  Msg("give --rows differing for one table of the rows that differ, choose ranks with "
                                      "--ranks, or give a larger --out-limit")));
  if (many && request.before) {
    request.before(Msg("writing {} tables, about {} together (--rows differing writes one)\n", plan.pairs.size(),
                       BytesText(static_cast<double>(bytes))));
  }
  return OkStatus();
}

/// Tables of many pairs take far longer than the answer.
bool TellsFirst(const CompareSettings& request, const PathPlan& plan) {
  return request.before && !request.differing && !request.structure && !request.log && request.replay == 0 &&
         plan.pairs.size() >= kManyRanks;
}

/// `status`, and what is complete nevertheless.
Status Stopped(const Status& status, const CompareReport& report, const PathPlan& plan) {
  if (report.pairs.empty()) return status;
  const Message what = status.code() == Code::kInterrupted ? KnownText("interrupted") : status.text();
  return {status.code(), Msg("{}; the results of the first {} of {} pairs are complete in {}", what,
                             report.pairs.size(), plan.pairs.size(), DirName(report.pairs[0].paths[0]))};
}

/// A name that no tensor has is mostly a slip: its matrix changed nothing.
void NoteUnused(const Postprocess& postprocess, PairReport* report) {
  const std::vector<std::string> names = postprocess.Unused();
  if (names.empty()) return;
  const std::string first = OneLine(names.front());
  report->warnings.push_back(
      names.size() == 1 ? Msg("--config: no tensor that was compared has the data name {}", first)
                        : Msg("--config: no tensor that was compared has the data name {} (and {} others that the file "
                              "lists)",
                              first, names.size() - 1));
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
    StatusOr<PairOutcome> pair = PairJob(i, work).Run();
    work->progress.Ended(i);
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
  return report->pairs.empty() ? OkStatus() : steps.End();
}

/// The pairs are compared once without tables, to see which ops are worth it; these are called again in float64, the
/// one that makes the first difference first of all. Then the rows can say it.
StatusOr<std::vector<ReplayedOp>> FindAndReplay(PairWork* work, Replayer* replayer) {
  CompareReport found;
  MSP_RETURN_IF_ERROR(ComparePairs(work, &found));
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
  mapping.by_name = request.plain;
  if (request.differing) MSP_RETURN_IF_ERROR(CheckDiffering(request));
  MSP_ASSIGN_OR_RETURN(const RankChoice ranks, RankChoice::Read(request.ranks));
  MSP_ASSIGN_OR_RETURN(PathPlan plan, PlanPaths(request.target, request.golden, ranks));
  if (!request.stack_file.empty() && plan.pairs.size() == 1) plan.pairs[0].stack = request.stack_file;
  if (request.html) MSP_RETURN_IF_ERROR(CheckHtmlReport());
  if (!request.differing) MSP_RETURN_IF_ERROR(CheckTables(request, plan));
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
  const std::vector<ComparePass> passes = PlanPasses(request);
  PairWork work{request,
                mapping,
                plan,
                judging,
                custom.get(),
                postprocess.get(),
                time,
                OrderedProgress(request, plan.pairs),
                ReplayPlan(request.replay),
                {},
                passes.front()};
  std::vector<ReplayedOp> replays;
  if (replayer) {
    MSP_ASSIGN_OR_RETURN(replays, FindAndReplay(&work, replayer.get()));
    work.replayed = &replays;
    work.pass = passes.back();
  }
  if (!request.differing && plan.pairs.size() > 1 && !request.structure && ShowsRuler(request)) {
    MSP_ASSIGN_OR_RETURN(work.rulers, MeasurePairs(request, mapping, judging, plan, SideBySide(request, plan)));
  }
  if (TellsFirst(request, plan)) MSP_RETURN_IF_ERROR(TellAnswer(work));
  MSP_RETURN_IF_ERROR(request.differing ? CompareDiffering(&work, &report) : ComparePairs(&work, &report));
  if (report.pairs.empty()) return report.failures.front().second;
  NoteWholeness(&report);
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
  MSP_ASSIGN_OR_RETURN(const RankChoice ranks, RankChoice::Read(request.ranks));
  MSP_ASSIGN_OR_RETURN(const PathPlan plan, PlanPaths(request.target, request.golden, ranks));
  JsonWriter json;
  json.BeginObject();
  json.Key("paths"), WritePathPlan(&json, plan);
  json.Key("matches");
  json.BeginArray();
  for (const FilePair& files : plan.pairs) {
    MSP_ASSIGN_OR_RETURN(DumpPair pair, OpenPairFiles(files));
    if (request.structure || BothAreStructures(pair)) {
      MSP_ASSIGN_OR_RETURN(const Structure target,
                           Structure::Read(*pair.target, VocabularyOf(*pair.target, *pair.golden, mapping.layer)));
      MSP_ASSIGN_OR_RETURN(const Structure golden,
                           Structure::Read(*pair.golden, VocabularyOf(*pair.target, *pair.golden, mapping.layer)));
      json.Raw(StructureDiffJson(DiffStructures(target, golden, mapping.layers)));
      continue;
    }
    MSP_RETURN_IF_ERROR(MatchDumpPair(files, mapping, nullptr, &pair));
    WriteMatchPlan(&json, pair.plan, OpNames(*pair.target), OpNames(*pair.golden));
  }
  json.EndArray();
  json.EndObject();
  return json.Take();
}

}  // namespace msprobe
