#include "jobs/pair_job.h"

#include <algorithm>

#include "base/file.h"
#include "base/interrupt.h"
#include "base/message.h"
#include "base/text.h"
#include "compare/first_difference/head_preview.h"
#include "compare/values/custom_metrics.h"
#include "diagnose/interim_result.h"
#include "dump/output_bound.h"
#include "json/writer.h"
#include "match/implementations.h"
#include "report/mapping_files.h"
#include "report/rows/ops_json.h"
#include "report/rows/unmatched_table.h"

namespace msprobe {
namespace {

// What a pair takes, at most, beside the size of its two dumps; and all that run side by side.
constexpr uint64_t kMemoryOfOne = 24 << 20, kMemoryOfPairs = 400 << 20;

/// The ruler's columns in the table, and in the HTML report.
bool RulesTable(const CompareSettings& r) { return !r.diff_analyze && (r.ruler || (r.verdicts && r.xlsx)); }
bool RulesPage(const CompareSettings& r) { return !r.diff_analyze && r.html && (r.ruler || r.verdicts); }

RowSettings RowsOf(const CompareSettings& request, const DumpPair& pair, const CustomMetrics* custom) {
  RowSettings out;
  out.mode = pair.options.mode;
  out.stacks = request.stacks && pair.stacks ? &*pair.stacks : nullptr;
  out.highlight = request.highlight && request.xlsx;
  out.ruler = RulesTable(request);
  out.older = request.older_columns;
  out.grads = !request.without_grads;
  if (custom && pair.tensors) out.custom = custom->columns();
  return out;
}

StatusOr<std::unique_ptr<RowSink>> OpenTable(const CompareSettings& request, const DumpPair& pair,
                                             const RowSettings& rows, const std::string& path) {
  uint64_t count = 0;
  if (request.xlsx) {
    MSP_ASSIGN_OR_RETURN(count, CountRows(*pair.target));
  }
  return CreateTableSink(rows, path, count);
}

void NoteUnmatched(const DumpPair& pair, PairReport* report) {
  for (size_t i = 0; i < pair.plan.golden_of.size() && report->target_only.size() < kNamesShown; ++i) {
    if (pair.plan.golden_of[i] == kNoOp && !pair.plan.Skips(i) && !pair.plan.NotSeen(i))
      report->target_only.emplace_back(pair.target->ops().NameAt(i));
  }
  for (const uint32_t g : pair.plan.golden_only) {
    if (report->golden_only.size() == kNamesShown) break;
    report->golden_only.emplace_back(pair.golden->ops().NameAt(g));
  }
  report->golden_only_ops = pair.plan.golden_only.size();
}

/// Ops do not pair by their names as they stand.
bool IsMapped(const MappingSettings& m) {
  return m.fuzzy || m.cell || m.api || m.layer || m.data || m.consistent_check;
}

/// A trainer computes in other modules and other rows than an engine: op by op every healthy pair would be called a
/// bug.
Status CheckPrograms(const CompareSettings& request, const DumpPair& pair) {
  const MappingSettings& m = request.mapping;
  const bool told = m.cell || m.api || m.layer || m.data || m.consistent_check;  // how they stand against each other
  if (request.plain || told) return OkStatus();
  const bool engine = IsEngineDump(*pair.target);
  if (engine == IsEngineDump(*pair.golden)) return OkStatus();
  return {
      Code::kUndecided,
      Msg("these are dumps of a trainer and of an inference engine, which do not compute op by op the same: msprobe "
          "rollout {} {} aligns them by module, request and position",
          OneLine(engine ? request.golden : request.target), OneLine(engine ? request.target : request.golden))};
}

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
    if (given) return UsageError(Msg("{} needs values, which a comparison of models does not have: remove it", name));
  }
  const MappingSettings& m = r.mapping;
  if (!m.cell && !m.api && !m.data && !m.consistent_check) return OkStatus();
  return UsageError(Msg("models are compared by place: only -lm/--layer_mapping applies, remove the other mapping"));
}

StatusOr<SuggestedMapping> SuggestFrom(const DumpPair& pair, const Mapping& mapping) {
  MSP_ASSIGN_OR_RETURN(const Structure target,
                       Structure::Read(*pair.target, VocabularyOf(*pair.target, *pair.golden, mapping.layer)));
  MSP_ASSIGN_OR_RETURN(const Structure golden,
                       Structure::Read(*pair.golden, VocabularyOf(*pair.target, *pair.golden, mapping.layer)));
  return SuggestMapping(target, golden, DiffStructures(target, golden, mapping.layers), mapping.layers);
}

std::string_view RowsText(ComparePass::Rows rows) {
  switch (rows) {
    case ComparePass::Rows::kNone: return "none";
    case ComparePass::Rows::kTable: return "table";
    case ComparePass::Rows::kAnalysis: return "analysis";
    case ComparePass::Rows::kMarks: return "marks";
    case ComparePass::Rows::kDiffering: return "differing";
  }
  return "";
}

}  // namespace

std::vector<ComparePass> PlanPasses(const CompareSettings& request) {
  ComparePass writing;
  writing.rows = request.diff_analyze ? ComparePass::Rows::kAnalysis : ComparePass::Rows::kTable;
  writing.watches = request.html || request.advisor;
  writing.logs = request.log != nullptr;
  if (request.replay == 0) return {writing};
  ComparePass finding;
  finding.rows = ComparePass::Rows::kNone;
  finding.replays = request.replay;
  writing.speaks = false;  // that has been said
  return {finding, writing};
}

std::string PassesJson(const std::vector<ComparePass>& passes) {
  JsonWriter json;
  json.Array(passes, [&](const ComparePass& pass) {
    json.BeginObject();
    json.Member("rows", RowsText(pass.rows));
    json.Member("speaks", pass.speaks);
    json.Member("watches", pass.watches);
    json.Member("logs", pass.logs);
    json.Member("replays", pass.replays);
    json.EndObject();
  });
  return json.Take();
}

size_t SideBySide(const CompareSettings& request, const PathPlan& plan) {
  if (request.log) return 1;  // rows are told as they are compared, in order
  uint64_t largest = 0;
  for (const FilePair& files : plan.pairs)
    largest = std::max(largest, FileBytes(files.target) + FileBytes(files.golden));
  return std::max<size_t>(1, kMemoryOfPairs / (kMemoryOfOne + largest));
}

RowSettings DifferingRowSettings(const PairWork& work, CompareMode mode, const StackFile* stacks) {
  static const StackFile* const none = new StackFile;
  RowSettings out;
  out.mode = mode;
  if (work.request.stacks) out.stacks = stacks ? stacks : none;
  out.ruler = true;
  if (work.custom && mode == CompareMode::kTensor) out.custom = work.custom->columns();
  return out;
}

bool ShowsRuler(const CompareSettings& request) { return RulesTable(request) || RulesPage(request); }

StatusOr<PairOutcome> PairJob::Run() {
  Glance();
  MSP_ASSIGN_OR_RETURN(pair_, OpenPairFiles(files_));
  if (AreModels()) {
    if (work_.pass.rows == ComparePass::Rows::kNone) return PairOutcome();
    if (work_.pass.rows == ComparePass::Rows::kMarks) {
      return UsageError(
          Msg("{} needs values, which a comparison of models does not have: remove it", "--rows differing"));
    }
    return CompareModels();
  }
  MSP_RETURN_IF_ERROR(CheckPrograms(request_, pair_));
  MSP_RETURN_IF_ERROR(MatchDumpPair(files_, work_.mapping, work_.custom, &pair_, work_.postprocess));
  if (request_.diff_analyze) UseStatistics(&pair_);
  pair_.options.thresholds = &work_.judging.thresholds;
  MSP_ASSIGN_OR_RETURN(ruler_, PlanRuler());
  if (!ruler_.contexts.empty()) pair_.options.contexts = &ruler_.contexts;
  MSP_RETURN_IF_ERROR(ChooseSinks());
  MSP_RETURN_IF_ERROR(ChooseOps());
  MSP_RETURN_IF_ERROR(Compare());
  if (differing_) {
    out_.rows = std::move(differing_->rows());
    out_.inherited = differing_->inherited();
    return std::move(out_);
  }
  MSP_RETURN_IF_ERROR(Find());
  if (work_.pass.rows != ComparePass::Rows::kNone) MSP_RETURN_IF_ERROR(Collect());
  return std::move(out_);
}

void PairJob::Glance() {
  if (!request_.glance || !work_.pass.speaks || request_.structure || index_ != 0 || IsMapped(request_.mapping)) return;
  // What is not whole is said first.
  std::vector<RecordingGap> gaps;
  for (const std::string& path : {files_.target, files_.golden})
    NoteUnopenedGap(DumpSide::kOnly, std::string(DirName(path)), &gaps);
  if (!gaps.empty()) return;
  const Message line = HeadPreview(files_);
  if (!line.empty()) work_.progress.Preview(index_, line);
}

bool PairJob::AreModels() const { return request_.structure || BothAreStructures(pair_); }

Progress PairJob::ProgressOf() const {
  if (!request_.progress) return {};
  return [this](double share) { work_.progress.Progress(index_, share); };
}

std::string PairJob::PathOf(const std::string& name, std::string_view kind) const {
  return JoinPath(JoinPath(request_.output, files_.folder),
                  name + files_.suffix + "_" + work_.time + std::string(kind));
}

std::string PairJob::ResultPath() const {
  const std::string_view kind = request_.diff_analyze ? ".json" : request_.xlsx ? ".xlsx" : ".csv";
  return PathOf(work_.plan.debug ? "debug_compare_result" : "compare_result", kind);
}

StatusOr<PairOutcome> PairJob::CompareModels() {
  MSP_RETURN_IF_ERROR(CheckStructureOptions(request_));
  MSP_ASSIGN_OR_RETURN(const Structure target,
                       Structure::Read(*pair_.target, VocabularyOf(*pair_.target, *pair_.golden, work_.mapping.layer)));
  MSP_ASSIGN_OR_RETURN(const Structure golden,
                       Structure::Read(*pair_.golden, VocabularyOf(*pair_.target, *pair_.golden, work_.mapping.layer)));
  const std::vector<LayerRule>& layers = work_.mapping.layers;
  MSP_ASSIGN_OR_RETURN(StructureResult result,
                       CompareStructures(pair_, target, golden, layers, ResultPath(), ProgressOf()));
  PairOutcome out;
  if (!request_.suggest_mapping.empty()) {
    out.suggested = SuggestMapping(target, golden, result.summary.diff, layers);
  }
  out.report.files = files_;
  out.report.matching = "place in the model";
  out.report.warnings = pair_.warnings;
  out.report.gaps = pair_.gaps;
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

/// What the ruler needs to know before the rows are written.
StatusOr<PairRuler> PairJob::PlanRuler() {
  const bool table = work_.pass.rows == ComparePass::Rows::kTable || work_.pass.rows == ComparePass::Rows::kAnalysis;
  const bool shown = table && ShowsRuler(request_);
  if (shown && index_ < work_.rulers.size()) return std::move(work_.rulers[index_]);
  if (shown) {
    RankFindings found;
    return MeasurePair(request_, work_.mapping, work_.judging, files_, &found);
  }
  PairRuler out;
  MSP_ASSIGN_OR_RETURN(out.calibrated, CalibrationOf(request_, work_.judging, files_));
  return out;
}

Status PairJob::ChooseSinks() {
  RowSettings rows = RowsOf(request_, pair_, work_.custom);
  if (pair_.tensors) rows.replays = work_.replayed;
  rows.target_dump = files_.target;
  if (work_.pass.rows == ComparePass::Rows::kNone) {
    sink_ = std::make_unique<NoRows>();
  } else if (work_.pass.rows == ComparePass::Rows::kAnalysis) {
    MSP_ASSIGN_OR_RETURN(std::unique_ptr<OpsJson> json, OpsJson::Create(rows, ResultPath()));
    analysis_ = json.get();
    sink_ = std::move(json);
  } else if (work_.pass.rows == ComparePass::Rows::kMarks) {
    auto marks = std::make_unique<RowMarks>(pair_.options.mode);
    marks_ = marks.get();
    sink_ = std::move(marks);
  } else if (work_.pass.rows == ComparePass::Rows::kDiffering) {
    const StackFile* stacks = pair_.stacks ? &*pair_.stacks : nullptr;
    auto differing = std::make_unique<DifferingRows>(
        pair_, files_, DifferingRowSettings(work_, pair_.options.mode, stacks), *work_.table);
    differing_ = differing.get();
    sink_ = std::move(differing);
  } else {
    MSP_ASSIGN_OR_RETURN(sink_, OpenTable(request_, pair_, rows, ResultPath()));
  }
  if (!work_.pass.watches) return OkStatus();
  const WatchOptions options = request_.html ? PageOptions(work_.plan.pairs.size()) : WatchOptions();
  rows.ruler = RulesPage(request_);
  MSP_ASSIGN_OR_RETURN(watch_, RowWatch::Create(pair_, rows, *sink_, options));
  return OkStatus();
}

/// What the first pass found worth a row, with what it knows of the ranks together.
Status PairJob::ChooseOps() {
  if (!differing_) return OkStatus();
  const size_t ops = pair_.target->ops().size();
  pair_.chosen.resize(ops, 0);
  ruler_.contexts.resize(ops);
  size_t count = 0;
  const ChosenOp* chosen = work_.chosen(index_, &count);
  for (size_t i = 0; i < count; ++i) {
    // The file may have been changed meanwhile.
    if (chosen[i].op >= ops) return BadInput(Msg("{} changed while it was compared", files_.target));
    pair_.chosen[chosen[i].op] = 1;
    ruler_.contexts[chosen[i].op] = chosen[i].context;
  }
  pair_.options.contexts = &ruler_.contexts;
  return OkStatus();
}

Status PairJob::Compare() {
  const auto take = [&](OpBlock&& block) {
    if (request_.log && !block.log.empty()) request_.log(block.log);
    if (watch_) watch_->Take(block);
    return sink_->Take(std::move(block));
  };
  InterimResult answer(pair_, [&](const FirstDifference& d) { work_.progress.Early(index_, DifferenceLine(d)); });
  SeenSoFar seen;
  if (request_.early && work_.pass.speaks) seen = [&](const OpDistances& so_far) { answer.Seen(so_far); };
  const RowFormat& format = watch_ ? static_cast<const RowFormat&>(*watch_) : *sink_;
  MSP_ASSIGN_OR_RETURN(compared_, ComparePair(pair_, format, take, ProgressOf(), seen, work_.pass.logs));
  answer.Wait();
  return OkStatus();
}

/// Which op differs first, and what follows from that.
Status PairJob::Find() {
  const bool replays = work_.pass.replays > 0;
  const OpDistances kept = replays ? compared_.distances : OpDistances();
  RankFindings& found = out_.findings.divergence;
  if (marks_) marks_->NoteReached(compared_.distances);
  Differences per_op;
  MSP_ASSIGN_OR_RETURN(
      found, FindOnRank(pair_, files_, std::move(compared_.distances),
                        ruler_.calibrated.empty() ? nullptr : &ruler_.calibrated, marks_ ? &per_op : nullptr));
  if (marks_) out_.chosen = marks_->Choose(per_op.contexts);
  found.unread = compared_.unread;
  found.first_unread = compared_.first_unread;
  if (replays) {
    out_.replays = ReplayPlan(work_.pass.replays);
    out_.replays.Add(pair_, files_, found.differences, kept);
  }
  if (analysis_) {
    MSP_ASSIGN_OR_RETURN(out_.findings.suspects, SuspectsOf(*pair_.target, files_, analysis_->same()));
  }
  return OkStatus();
}

Status PairJob::Collect() {
  if (InterruptRequested()) return Interrupted();
  MSP_RETURN_IF_ERROR(sink_->Commit());
  NoteRows();
  return WriteMore();
}

void PairJob::NoteRows() {
  PairReport& report = out_.report;
  report.differences = out_.findings.divergence.differences;
  report.files = files_;
  report.mode = pair_.options.mode;
  report.fuzzy = pair_.plan.options.fuzzy;
  report.matching = pair_.plan.how;
  report.paths = sink_->paths();
  report.counts = compared_.counts;
  report.warnings = pair_.warnings;
  report.gaps = pair_.gaps;
  report.unread = compared_.unread;
  report.target_unseen = pair_.plan.target_unseen;
  report.golden_unseen = pair_.plan.golden_unseen;
  if (compared_.custom_failed > 0) {
    report.warnings.push_back(Msg("a metric of --custom_metric failed in {} rows; the first: {}",
                                  compared_.custom_failed, compared_.first_custom_failed));
  }
  if (compared_.unread > 0) {
    report.warnings.push_back(
        Msg("{} rows could not be compared because a tensor file could not be read or processed; the first: {}",
            compared_.unread, compared_.first_unread));
  }
  if (!report.differences.warning.empty()) report.warnings.push_back(report.differences.warning);
  NoteUnmatched(pair_, &report);
}

/// The files beside the table.
Status PairJob::WriteMore() {
  PairReport& report = out_.report;
  if (marks_) return OkStatus();
  if (request_.mapping.layer || !request_.mapping.layer_template.empty()) {
    const std::string end = files_.suffix + "_" + work_.time + ".yaml";
    const std::string folder = JoinPath(request_.output, files_.folder);
    MSP_RETURN_IF_ERROR(WriteMappings(&pair_, folder, end, request_.plain, &report.mappings));
  }
  if (request_.unmatched) {
    const std::string path = PathOf("unmatched_ops", request_.xlsx ? ".xlsx" : ".csv");
    MSP_ASSIGN_OR_RETURN(report.unmatched, WriteUnmatched(pair_, path));
  }
  if (!request_.suggest_mapping.empty()) {
    MSP_ASSIGN_OR_RETURN(out_.suggested, SuggestFrom(pair_, work_.mapping));
  }
  if (request_.html) report.page = watch_->PageJson();
  if (request_.advisor) {
    const std::string path = JoinPath(request_.output, "advisor" + files_.suffix + "_" + work_.time + ".txt");
    MSP_ASSIGN_OR_RETURN(report.advisor, WriteAdvisor(path, watch_->advice()));
  }
  return OkStatus();
}

}  // namespace msprobe
