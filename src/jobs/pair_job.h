// The comparison of one pair of dumps, step by step.
#pragma once

#include <msprobe/compare.h>

#include <memory>
#include <string>
#include <vector>

#include "diagnose/replay/replay.h"
#include "jobs/pair_ruler.h"
#include "report/ordered_progress.h"
#include "report/row_watch.h"
#include "report/rows/differing_rows.h"
#include "report/rows/row_sink.h"
#include "report/step_watch.h"
#include "report/structure_compare.h"

namespace msprobe {

class CustomMetrics;
class OpsJson;
class Postprocess;

/// What one pass over the pairs does. With a replay there are two: the rows can only show it once it is known which ops
/// are worth it.
struct ComparePass {
  /// kMarks and kDiffering: the two passes of --rows differing.
  enum class Rows : uint8_t { kNone, kTable, kAnalysis, kMarks, kDiffering };
  Rows rows = Rows::kTable;
  bool speaks = true;    // the first glance and the early answer are given in this pass
  bool watches = false;  // rows are kept for the HTML report or the advisor
  bool logs = false;     // a line for each row of tensors
  size_t replays = 0;    // that many ops of a pair are chosen for the replay
};
std::vector<ComparePass> PlanPasses(const CompareSettings& request);
/// [{"rows": "table", "speaks": true, "watches": false, "logs": false, "replays": 0}]
std::string PassesJson(const std::vector<ComparePass>& passes);

/// What one pair gives: its part of the report, and what it says about who diverged first.
struct PairOutcome {
  Status status;
  PairReport report;
  PairFindings findings;
  ReplayPlan replays;
  SuggestedMapping suggested;  // when it was asked for
  BigArray<ChosenOp> chosen;   // of a pass of marks
  RowBlock rows;               // of a pass of rows that differ
  uint64_t inherited = 0;      // rows beside them
};

/// What all pairs share while they are compared.
struct PairWork {
  const CompareSettings& request;
  const Mapping& mapping;
  const PathPlan& plan;
  const Judging& judging;
  CustomMetrics* custom;
  const Postprocess* postprocess;
  std::string time;
  OrderedProgress progress;
  ReplayPlan replays;  // of the pairs that are taken
  MappingSuggestion suggestion;
  ComparePass pass;
  const std::vector<ReplayedOp>* replayed = nullptr;
  std::vector<PairRuler> rulers = {};  // by pair, where the table shows what several ranks say together
  const ResultTable* table = nullptr;  // of rows that differ
  std::function<const ChosenOp*(size_t pair, size_t* count)> chosen = {};  // by the pass of marks
};

/// How many pairs are compared at a time.
size_t SideBySide(const CompareSettings& request, const PathPlan& plan);
/// Of the table of rows that differ, whose columns do not depend on the pair; `stacks` are those of the pair, or null.
RowSettings DifferingRowSettings(const PairWork& work, CompareMode mode, const StackFile* stacks);

/// Whether a table or a page of the comparison shows the ruler's columns.
bool ShowsRuler(const CompareSettings& request);

class PairJob {
 public:
  /// Both outlive the object.
  PairJob(size_t index, PairWork* work)
      : index_(index), work_(*work), request_(work->request), files_(work->plan.pairs[index]) {}
  StatusOr<PairOutcome> Run();

 private:
  void Glance();
  bool AreModels() const;
  StatusOr<PairOutcome> CompareModels();
  StatusOr<PairRuler> PlanRuler();
  Status ChooseSinks();
  Status ChooseOps();
  Status Compare();
  Status Find();
  Status Collect();
  void NoteRows();
  Status WriteMore();
  Progress ProgressOf() const;
  /// "compare_result_rank0_TIME.csv" in the folder of the pair.
  std::string PathOf(const std::string& name, std::string_view kind) const;
  std::string ResultPath() const;

  const size_t index_;
  PairWork& work_;
  const CompareSettings& request_;
  const FilePair& files_;
  DumpPair pair_;
  PairRuler ruler_;
  std::unique_ptr<RowSink> sink_;
  const OpsJson* analysis_ = nullptr;  // the sink, with -da
  RowMarks* marks_ = nullptr;          // the sink of a pass of marks
  DifferingRows* differing_ = nullptr;
  std::unique_ptr<RowWatch> watch_;
  CompareOutcome compared_;
  PairOutcome out_;
};

}  // namespace msprobe
