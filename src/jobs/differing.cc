#include "jobs/differing.h"

#include <algorithm>
#include <unordered_map>

#include "base/file.h"
#include "base/message.h"
#include "base/parallel.h"
#include "dump/output_bound.h"
#include "jobs/replicas.h"
#include "report/rank_table.h"

namespace msprobe {
namespace {

constexpr uint64_t kBytesOfRow = 450;  // about

class DifferingJob {
 public:
  DifferingJob(PairWork* work, CompareReport* report)
      : work_(*work), report_(*report), pairs_(work->plan.pairs), slices_(pairs_.size()) {}

  Status Answer() {
    MSP_ASSIGN_OR_RETURN(replicas_, FindReplicas(pairs_));
    side_by_side_ = SideBySide(work_.request, work_.plan);
    work_.pass.rows = ComparePass::Rows::kMarks;
    work_.pass.speaks = work_.pass.watches = work_.pass.logs = false;
    return Scan();
  }

  Status Run() {
    MSP_RETURN_IF_ERROR(Answer());
    if (report_.pairs.empty()) return OkStatus();
    MSP_RETURN_IF_ERROR(Tell());
    MSP_RETURN_IF_ERROR(WriteRows());
    MSP_ASSIGN_OR_RETURN(report_.ranks, WriteRankTable(PathOf("compare_ranks"), report_));
    return OkStatus();
  }

 private:
  /// Of chosen_, what belongs to a pair.
  struct Slice {
    size_t begin = 0, end = 0;
    uint64_t may_have_rows = 0;  // ops
  };

  std::string PathOf(const std::string& name) const {
    return JoinPath(work_.request.output, name + "_" + work_.time + ".csv");
  }
  bool IsCompared(size_t pair) const { return replicas_.of[pair] == pair; }

  /// Step by step, so that the findings of one step at a time are in memory.
  Status Scan() {
    StepWatch steps(work_.request, work_.mapping, &report_);
    for (size_t begin = 0; begin < pairs_.size();) {
      size_t end = begin;
      while (end < pairs_.size() && pairs_[end].step == pairs_[begin].step) ++end;
      MSP_RETURN_IF_ERROR(ScanStep(begin, end, &steps));
      begin = end;
    }
    return report_.pairs.empty() ? OkStatus() : steps.End();
  }

  /// Pairs that differ at all in front of those whose dumps are equal.
  std::vector<size_t> Suspects(size_t begin, size_t end) const {
    std::vector<size_t> out;
    for (const bool equal : {false, true}) {
      for (size_t i = begin; i < end; ++i) {
        if (IsCompared(i) && replicas_.equal[i] == equal) out.push_back(i);
      }
    }
    return out;
  }

  Status ScanStep(size_t begin, size_t end, StepWatch* steps) {
    const std::vector<size_t> order = Suspects(begin, end);
    std::vector<PairOutcome> found(end - begin);
    ThreadBudget budget(order.size(), side_by_side_);
    const auto compare = [&](size_t k) -> StatusOr<PairOutcome> {
      const ThreadBudget::Task task(&budget);
      StatusOr<PairOutcome> pair = PairJob(order[k], &work_).Run();
      work_.progress.Ended(order[k]);
      if (pair.ok()) return pair;
      PairOutcome failed;
      failed.status = pair.status();
      return failed;
    };
    const auto take = [&](size_t k, PairOutcome&& pair) -> Status {
      const Code code = pair.status.code();
      if (!pair.status.ok() && code != Code::kBadInput && code != Code::kUsage) return pair.status;
      Keep(order[k], &pair);
      ShareNames(&names_, &pair.findings.divergence);
      pair.findings.divergence.differences.infected = {};  // the report has them
      found[order[k] - begin] = std::move(pair);
      return OkStatus();
    };
    MSP_RETURN_IF_ERROR(ParallelOrdered<PairOutcome>(order.size(), 4 * side_by_side_, compare, take, side_by_side_));
    for (size_t i = end; i-- > begin;) work_.progress.Ended(i);
    return TakeStep(begin, end, &found, steps);
  }

  void Keep(size_t i, PairOutcome* pair) {
    slices_[i].begin = chosen_.size();
    chosen_.append(pair->chosen.data(), pair->chosen.size());
    slices_[i].end = chosen_.size();
    pair->chosen = {};
  }

  /// In the order of the ranks. What a rank found is given away when the last of its replicas has its copy.
  Status TakeStep(size_t begin, size_t end, std::vector<PairOutcome>* found, StepWatch* steps) {
    std::vector<size_t> last(end - begin);
    for (size_t i = begin; i < end; ++i) last[replicas_.of[i] - begin] = i;
    for (size_t i = begin; i < end; ++i) {
      const size_t of = replicas_.of[i];
      PairOutcome& pair = (*found)[of - begin];
      if (!pair.status.ok()) {
        report_.failures.emplace_back(pairs_[i].label, pair.status);
        continue;
      }
      if (!report_.pairs.empty() && pair.report.mode != report_.pairs.front().mode) {
        const Message what =
            Msg("it is another kind of dump than {}, with other columns", report_.pairs.front().files.label);
        report_.failures.emplace_back(pairs_[i].label, BadInput(what));
        continue;
      }
      PairFindings findings;
      findings.divergence = last[of - begin] == i && of == i ? std::move(pair.findings.divergence)
                                                             : SameFindingsOf(pair.findings.divergence, pairs_[i]);
      PairReport& report = report_.pairs.emplace_back(last[of - begin] == i ? std::move(pair.report) : pair.report);
      report.files = pairs_[i];
      report.rank.emplace();
      const FirstDifference& first = report.differences.Answer();
      if (first.kind != FirstDifference::Kind::kNone) report.rank->first = DifferenceLine(first).English();
      if (of != i) {
        report.rank->equal_to = pairs_[of].label;
        report.warnings.clear();
        report.differences.infected = {};
      }
      reported_.push_back(i);
      MSP_RETURN_IF_ERROR(steps->Add(std::move(findings)));
    }
    return OkStatus();
  }

  /// What only passes on the difference of another rank is known when all of them are.
  void NoteCarriers() {
    std::unordered_map<std::string_view, const Slice*> slice_of;
    for (size_t i = 0; i < pairs_.size(); ++i) slice_of.emplace(pairs_[i].target, &slices_[i]);
    for (const Carrier& carrier : report_.divergence.carriers) {
      const auto at = slice_of.find(carrier.target_dump);
      if (at == slice_of.end()) continue;
      const Slice& slice = *at->second;
      ChosenOp* const begin = chosen_.begin() + slice.begin;
      ChosenOp* const end = chosen_.begin() + slice.end;
      ChosenOp* const op = std::lower_bound(begin, end, carrier.op.op,
                                            [](const ChosenOp& chosen, size_t index) { return chosen.op < index; });
      if (op == end || op->op != carrier.op.op) continue;
      op->context.inherits = true;
      op->context.verdict = RulerVerdict::kInherited;
    }
  }

  /// The answer, and how much will be written.
  Status Tell() {
    NoteCarriers();
    double rows = 0;
    for (size_t i = 0; i < report_.pairs.size(); ++i) {
      Slice& slice = slices_[reported_[i]];
      for (size_t k = slice.begin; k < slice.end; ++k) slice.may_have_rows += MayHaveRows(chosen_[k].context.verdict);
      const CompareCounts& counts = report_.pairs[i].counts;
      if (counts.ops == 0 || !IsCompared(reported_[i])) continue;
      rows +=
          static_cast<double>(slice.may_have_rows) * static_cast<double>(counts.rows) / static_cast<double>(counts.ops);
    }
    const auto bytes = static_cast<uint64_t>(rows * kBytesOfRow);
    if (work_.request.before) {
      report_.told = true;
      Message text = RanksAnswer(report_);
      text += Msg("writing the rows that differ: at most about {}\n", BytesText(static_cast<double>(bytes)));
      work_.request.before(text);
    }
    return CheckOutput(bytes, 2, work_.request.out_limit, Ways());
  }

  static Message Ways() { return Msg("choose ranks with --ranks, or give a larger --out-limit"); }

  /// A pair of ranks at a time as many as fit memory; its rows are part of it.
  Status WriteRows() {
    std::vector<size_t> places;  // in report_.pairs
    for (size_t i = 0; i < reported_.size(); ++i) {
      const Slice& slice = slices_[reported_[i]];
      if (slice.end > slice.begin) places.push_back(i);
    }
    work_.pass.rows = ComparePass::Rows::kDiffering;
    work_.chosen = [this](size_t pair, size_t* count) {
      const Slice& slice = slices_[pair];
      *count = slice.end - slice.begin;
      return static_cast<const ChosenOp*>(chosen_.begin() + slice.begin);
    };
    MSP_ASSIGN_OR_RETURN(const std::unique_ptr<ResultTable> table, MakeTable());
    work_.table = table.get();
    const size_t side_by_side = std::max<size_t>(1, side_by_side_ / 2);
    ThreadBudget budget(places.size(), side_by_side);
    uint64_t written = 0;
    const auto compare = [&](size_t k) -> StatusOr<PairOutcome> {
      const ThreadBudget::Task task(&budget);
      return PairJob(reported_[places[k]], &work_).Run();
    };
    const auto take = [&](size_t k, PairOutcome&& pair) -> Status {
      RankOutcome& rank = *report_.pairs[places[k]].rank;
      rank.differing = pair.rows.row_ends.size();
      rank.inherited = pair.inherited;
      written += pair.rows.bytes.size();
      MSP_RETURN_IF_ERROR(CheckOutput(written, 2, work_.request.out_limit, Ways()));
      return table->Take(std::move(pair.rows));
    };
    MSP_RETURN_IF_ERROR(ParallelOrdered<PairOutcome>(places.size(), side_by_side, compare, take, side_by_side));
    MSP_RETURN_IF_ERROR(table->Commit());
    report_.differing = table->paths();
    CopyToReplicas();
    return OkStatus();
  }

  StatusOr<std::unique_ptr<ResultTable>> MakeTable() {
    TableSpec spec;
    spec.path = PathOf("compare_differing");
    spec.columns = DifferingRows::Titles(DifferingRowSettings(work_, report_.pairs.front().mode, nullptr));
    return CreateCsvTable(spec);
  }

  void CopyToReplicas() {
    std::vector<const RankOutcome*> of(pairs_.size());
    for (size_t i = 0; i < reported_.size(); ++i) {
      RankOutcome& rank = *report_.pairs[i].rank;
      if (IsCompared(reported_[i])) {
        of[reported_[i]] = &rank;
      } else {
        const RankOutcome& same = *of[replicas_.of[reported_[i]]];
        rank.differing = same.differing;
        rank.inherited = same.inherited;
      }
    }
  }

  PairWork& work_;
  CompareReport& report_;
  const std::vector<FilePair>& pairs_;
  Replicas replicas_;
  SharedNames names_;
  size_t side_by_side_ = 1;
  std::vector<Slice> slices_;     // by pair
  BigArray<ChosenOp> chosen_;     // of all pairs
  std::vector<size_t> reported_;  // the pair of each of report_.pairs
};

}  // namespace

Status CheckDiffering(const CompareSettings& r) {
  const std::pair<bool, const char*> tables[] = {{r.xlsx, "--xlsx"},
                                                 {r.html, "--html"},
                                                 {r.plain, "--plain"},
                                                 {r.structure, "--structure"},
                                                 {r.diff_analyze, "-da"},
                                                 {r.replay > 0, "--replay"},
                                                 {r.unmatched, "--unmatched"},
                                                 {!r.suggest_mapping.empty(), "--suggest_mapping"},
                                                 {r.log != nullptr, "-tensor_log"}};
  for (const auto& [given, name] : tables) {
    if (given)
      return UsageError(Msg("{} is for the tables of single ranks, which --rows differing does not write", name));
  }
  return OkStatus();
}

Status TellAnswer(PairWork& work) {
  CompareReport report;
  PairWork own{work.request,  work.mapping,
               work.plan,     work.judging,
               work.custom,   work.postprocess,
               work.time,     OrderedProgress(work.request, work.plan.pairs),
               ReplayPlan(0), {},
               work.pass};
  MSP_RETURN_IF_ERROR(DifferingJob(&own, &report).Answer());
  // Why nothing could be compared is told with the tables.
  if (report.pairs.empty() || report.pairs.front().structure) return OkStatus();
  work.request.before(RanksAnswer(report));
  return OkStatus();
}

Status CompareDiffering(PairWork* work, CompareReport* report) { return DifferingJob(work, report).Run(); }

}  // namespace msprobe
