// A second reader of the rows beside the table: keeps what the HTML report shows (the worst rows and ops, the error
// through depth) and what the advisor speaks of. Memory is bounded by WatchOptions and the number of layers.
#pragma once

#include <array>
#include <limits>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "compare/pair/compare.h"
#include "match/modules/layer_place.h"
#include "report/advisor.h"
#include "report/rows/row_sink.h"

namespace msprobe {

class JsonWriter;

struct WatchOptions {
  bool page = false;      // for the HTML report; otherwise only for the advisor
  size_t rows = 10'000;   // worst rows kept
  size_t ops = 200;       // worst ops kept, of either kind
  size_t names = 500;     // names kept of ops on one side only, each
  size_t cells = 60'000;  // places in stacks of layers
  size_t bins = 400;      // points of the curves over the whole run
};

/// For an HTML report that holds so many pairs: together they stay small enough to be attached, and to fit memory.
WatchOptions PageOptions(size_t pairs);

/// Numbers of a row that curves are drawn of, the first is our own: the relative error as ShownError says.
inline constexpr size_t kMostMeasures = 8;

class RowWatch : public RowFormat {
 public:
  using Measures = std::array<float, kMostMeasures>;

  /// Formats rows for the table by `table`, and for itself. All of the arguments must stay.
  static StatusOr<std::unique_ptr<RowWatch>> Create(const DumpPair& pair, const RowSettings& rows,
                                                    const RowFormat& table, const WatchOptions& options);

  /// Called by several threads.
  void AppendOp(const OpDiff& op, int stack, OpBlock* block) const override;
  /// Called with each block in order, before the table takes it.
  void Take(const OpBlock& block);

  const Advice& advice() const { return advice_; }
  /// One JSON object: measures, worst ops, curves, rows, ops on one side only.
  std::string PageJson() const;

 private:
  /// Of one row of a block; its text is a JSON list of the cells.
  struct RowNote {
    Verdict verdict = Verdict::kPass;
    RulerVerdict ruler = RulerVerdict::kNone;
    bool result = false, matched = false, suspect = false;
    Measures measures{};
    uint64_t begin = 0, end = 0;  // of the text
  };
  struct OpNote {
    std::string_view name;
    LayerPlace place;
    bool matched = false;
    int stack = -1;
    size_t rows_end = 0;
  };
  struct Notes;

  struct KeptRow {
    int blame = 0;  // by the ruler
    Verdict verdict = Verdict::kPass;
    bool matched = false;
    float error = 0;
    uint64_t index = 0;  // in the table
    int stack = -1;
    std::string cells;  // as JSON
  };
  struct KeptOp {
    std::string_view name;
    Verdict verdict = Verdict::kPass;
    RulerVerdict ruler = RulerVerdict::kNone;
    float input = 0, output = 0;  // relative errors
    float score = 0;
    uint64_t index = 0;  // of the op in the target
    uint64_t first_row = 0, rows = 0;
  };
  /// A point of a curve: the largest of each measure over the results of the ops there.
  struct Point {
    Measures worst;
    std::string_view worst_op;  // by the first measure
    uint64_t rows = 0, warnings = 0, errors = 0;
    Point() { worst.fill(-1); }
  };
  struct CellKey {
    uint32_t stack = 0, part = 0;
    int layer = 0;
    uint8_t direction = 0;
    bool operator==(const CellKey&) const = default;
  };
  struct CellHash {
    size_t operator()(const CellKey& k) const {
      return ((static_cast<size_t>(k.stack) * 1'000'003 + k.part) * 1'000'003 + static_cast<size_t>(k.layer)) * 4 +
             k.direction;
    }
  };

  RowWatch(const DumpPair& pair, const RowFormat& table, bool older, const WatchOptions& options)
      : pair_(pair), table_(table), older_(older), options_(options) {}
  /// The advisor speaks of the first row that the table beside it finds fault with.
  bool IsSuspect(const OpDiff& op, size_t row) const;
  void NoteRow(const RowCells& row, RowNote* note, std::string* text) const;
  void TakeOp(const OpNote& op, const RowNote* rows, size_t count, std::string_view text);
  void KeepRow(const OpNote& op, const RowNote& row, std::string_view text);
  void KeepOp(const OpNote& op, const RowNote* rows, size_t count, float input, float output);
  static void AddTo(Point* point, const OpNote& op, const RowNote& row);
  uint32_t IdOf(std::string_view name, std::vector<std::string_view>* names,
                std::unordered_map<std::string_view, uint32_t>* ids);

  void WriteOps(JsonWriter* json, const std::vector<KeptOp>& ops) const;
  void WriteCurves(JsonWriter* json) const;
  void WriteRows(JsonWriter* json) const;
  void WritePoint(JsonWriter* json, const Point& point) const;

  const DumpPair& pair_;
  const RowFormat& table_;
  const bool older_;
  const WatchOptions options_;
  std::unique_ptr<RowColumns> columns_;  // of the page
  std::unique_ptr<LayerPlaces> places_;
  std::vector<size_t> measured_;  // columns that curves are drawn of; the measures behind our own
  std::vector<std::string_view> measures_;

  Advice advice_;
  double roundoff_ = 0;  // relative error that the coarsest dtype explains
  uint64_t next_op_ = 0, next_row_ = 0;
  std::vector<KeptRow> rows_;          // a heap, the least of them in front
  std::vector<KeptOp> worst_, added_;  // heaps, too
  std::vector<std::string_view> stacks_, parts_;
  std::unordered_map<std::string_view, uint32_t> stack_ids_, part_ids_;
  std::vector<std::pair<CellKey, Point>> cells_;  // in order of appearance
  std::unordered_map<CellKey, size_t, CellHash> cell_ids_;
  std::array<std::vector<Point>, 4> run_;  // by direction: over the whole run
};

}  // namespace msprobe
