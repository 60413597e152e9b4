// The rows of a comparison as typed cells. All columns of all tables are in one list (row_columns.cc).
#pragma once

#include <string>
#include <vector>

#include "compare/metrics/metric.h"
#include "dump/reader.h"
#include "report/rows/highlight.h"
#include "report/rows/replay_lookup.h"
#include "sheet/cell.h"

namespace msprobe {

/// Which rows are wanted, and which columns beside those of the mode.
struct RowSettings {
  CompareMode mode = CompareMode::kStatistics;
  const StackFile* stacks = nullptr;                 // adds the stack column
  bool highlight = false;                            // rows in colour, with reasons, as -hl of older releases
  std::vector<std::string> custom;                   // columns of the user's own metrics, in tensor mode
  bool ruler = false;                                // adds what the ruler says
  bool older = false;                                // verdicts as release 8.x gives them
  bool grads = true;                                 // the columns of requires_grad; 8.1.1 has none for MindSpore
  const std::vector<ReplayedOp>* replays = nullptr;  // adds what the replays say
  std::string target_dump;                           // of the replays: those of this dump
  bool analysis = false;                             // the columns of -da
};

/// One row; used again for the next one, which its texts do not outlive.
struct RowCells {
  std::vector<Cell> cells;         // as RowColumns::titles()
  std::vector<std::string> texts;  // one for each cell that needs one of its own
};

/// What a row is made from.
struct RowView {
  const OpDiff& op;
  size_t index;
  const DiffRow& row;
  const ItemView& target;
  const ItemView* golden;  // null without a partner
  int stack;               // -1: not shown in this row
  const RowSettings& options;
  const ReplayLookup& replays;
  const Highlight* highlight;  // null without
};

/// `text` holds what is a list or an object.
Cell StatCell(const StatValue& value, std::string* text);
/// As -da names it.
std::string_view ItemStateText(ItemState state);
/// Where the verdict of a row by the rules of mindstudio-probe and that of the ruler contradict each other: "passes the
/// old rule, differs by 25 %"; "" where they agree.
std::string DisagreementText(Verdict by_rules, const RulerCell& ruler);
/// The rank that an entry of a batch_isend_irecv talks to.
std::string_view PeerOf(const ItemView& item);

class RowColumns {
 public:
  explicit RowColumns(const RowSettings& options);

  const RowSettings& options() const { return options_; }
  const std::vector<std::string>& titles() const { return titles_; }
  CurveOf curve(size_t column) const;

  /// Fills `out` with row `row` of `op`; `stack` is the id of the op's stack, -1 without.
  void Fill(const OpDiff& op, size_t row, int stack, const Highlight* highlight, RowCells* out) const;

  struct Column;

 private:
  struct Shown {
    const Column* column;
    size_t part;
    CurveOf curve;
  };
  const RowSettings options_;
  const ReplayLookup replays_;
  std::vector<Shown> shown_;
  std::vector<std::string> titles_;
};

}  // namespace msprobe
