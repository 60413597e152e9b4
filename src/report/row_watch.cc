#include "report/row_watch.h"

#include <algorithm>
#include <cmath>

#include "base/file.h"
#include "json/writer.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"
#include "report/rows/older_verdict.h"
#include "sheet/table.h"

namespace msprobe {
namespace {

constexpr double kCoarsest = 1.6e-2;  // of bfloat16; that of float8 would hide too much
constexpr float kInfinity = std::numeric_limits<float>::infinity();

/// -1 without a number; NaN and infinities are as far off as can be.
float MeasureOf(const Cell& cell, CurveOf curve) {
  if (!cell.IsFigure()) return -1;
  if (!std::isfinite(cell.number)) return curve == CurveOf::kLikeness ? 0 : kInfinity;
  const double size = std::fabs(cell.number) / (cell.kind == Cell::Kind::kPercent ? 100 : 1);
  const float value = static_cast<float>(size);
  return curve == CurveOf::kLikeness ? std::max(0.f, 1 - value) : value;
}

/// Rows that begin a difference come first, whatever the older rules say of them.
int BlameOf(RulerVerdict v) { return v == RulerVerdict::kBug ? 2 : v == RulerVerdict::kSuspicious ? 1 : 0; }

uint8_t DirectionOf(std::string_view name) { return static_cast<uint8_t>(ParseOpName(name).direction); }

/// Keeps the `most` entries that `before` puts first.
template <typename T, typename Before>
void Keep(std::vector<T>* heap, size_t most, T&& entry, const Before& before) {
  if (heap->size() == most) {
    if (most == 0 || !before(entry, heap->front())) return;
    std::pop_heap(heap->begin(), heap->end(), before);
    heap->back() = std::move(entry);
  } else {
    heap->push_back(std::move(entry));
  }
  std::push_heap(heap->begin(), heap->end(), before);
}

}  // namespace

WatchOptions PageOptions(size_t pairs) {
  const auto share = [&](size_t of_all, size_t least, size_t most) {
    return std::clamp(of_all / std::max<size_t>(pairs, 1), least, most);
  };
  WatchOptions out;
  out.page = true;
  out.rows = share(20'000, 50, out.rows);
  out.ops = share(3'200, 20, out.ops);
  out.names = share(8'000, 20, out.names);
  out.cells = share(120'000, 1'000, out.cells);
  out.bins = share(6'400, 50, out.bins);
  return out;
}

struct RowWatch::Notes : BlockNotes {
  std::string text;
  std::vector<OpNote> ops;
  std::vector<RowNote> rows;
  double tolerance = 0;  // the coarsest
};

StatusOr<std::unique_ptr<RowWatch>> RowWatch::Create(const DumpPair& pair, const RowSettings& rows,
                                                     const RowFormat& table, const WatchOptions& options) {
  std::unique_ptr<RowWatch> out(new RowWatch(pair, table, rows.older, options));
  if (!options.page) return out;
  RowSettings plain;
  plain.mode = rows.mode;
  plain.custom = rows.custom;
  plain.ruler = rows.ruler;
  out->columns_ = std::make_unique<RowColumns>(plain);
  out->measures_ = {"error"};
  for (size_t i = 0; i < out->columns_->titles().size() && out->measures_.size() < kMostMeasures; ++i) {
    if (out->columns_->curve(i) == CurveOf::kNothing) continue;
    out->measured_.push_back(i);
    out->measures_.push_back(out->columns_->titles()[i]);
  }
  // Without construct.json APIs are in no layer; the comparison itself says what is wrong with a bad one.
  StatusOr<std::shared_ptr<const ParentIndex>> parents = pair.target->Parents();
  out->places_ = std::make_unique<LayerPlaces>(parents.ok() ? std::move(*parents) : nullptr);
  for (auto& points : out->run_) points.resize(options.bins);
  return out;
}

void RowWatch::NoteRow(const RowCells& row, RowNote* note, std::string* text) const {
  note->begin = text->size();
  std::string cell;
  JsonWriter json(text, kJsonPage);
  json.Array(row.cells, [&](const Cell& c) {
    cell.clear();
    AppendCsvText(c, &cell);
    json.String(cell);
  });
  note->end = text->size();
  if (!note->matched) return;
  for (size_t m = 0; m < measured_.size(); ++m) {
    note->measures[m + 1] = MeasureOf(row.cells[measured_[m]], columns_->curve(measured_[m]));
  }
}

bool RowWatch::IsSuspect(const OpDiff& op, size_t row) const {
  if (!older_) return op.rows[row].verdict != Verdict::kPass;
  const std::string_view said = OlderVerdict(op, row, pair_.options.mode);
  return said == "Warning" || said == "Different" || said == "No";
}

void RowWatch::AppendOp(const OpDiff& op, int stack, OpBlock* block) const {
  table_.AppendOp(op, stack, block);
  if (!block->notes) block->notes = std::make_unique<Notes>();
  Notes& notes = static_cast<Notes&>(*block->notes);
  if (columns_ && !HasArbitraryValues(op.op)) notes.tolerance = std::max(notes.tolerance, OpTolerance(op));
  RowCells cells;
  for (size_t i = 0; i < op.rows_used; ++i) {
    RowNote row;
    row.verdict = op.rows[i].verdict;
    if (columns_ && columns_->options().ruler) row.ruler = op.ruler[i].verdict;
    row.suspect = IsSuspect(op, i);
    row.result = IsResult(op.target[i].state);
    row.matched = op.rows[i].golden != kNoItem;
    row.measures.fill(-1);
    if (columns_) {
      row.measures[0] = static_cast<float>(ShownError(op, i, pair_.options.mode));
      columns_->Fill(op, i, -1, nullptr, &cells);
      NoteRow(cells, &row, &notes.text);
    }
    notes.rows.push_back(row);
  }
  notes.ops.push_back(
      {op.op, places_ ? places_->Of(op.op) : LayerPlace(), op.matched, columns_ ? stack : -1, notes.rows.size()});
}

void RowWatch::Take(const OpBlock& block) {
  if (!block.notes) return;  // a block without ops
  const Notes& notes = static_cast<const Notes&>(*block.notes);
  roundoff_ = std::max(roundoff_, std::min(notes.tolerance, kCoarsest));
  size_t row = 0;
  for (const OpNote& op : notes.ops) {
    TakeOp(op, notes.rows.data() + row, op.rows_end - row, notes.text);
    row = op.rows_end;
  }
}

void RowWatch::TakeOp(const OpNote& op, const RowNote* rows, size_t count, std::string_view text) {
  for (size_t i = 0; i < count && !advice_.found(); ++i) {
    if (!rows[i].suspect) continue;
    advice_ = Advise(op.name, rows[i].result, next_row_ + i + 2);
  }
  if (columns_) {
    float input = -1, output = -1;  // without such rows
    const uint8_t direction = DirectionOf(op.name);
    Point* cell = nullptr;
    if (op.place.layer >= 0) {
      const CellKey key{IdOf(op.place.stack, &stacks_, &stack_ids_), IdOf(op.place.part, &parts_, &part_ids_),
                        op.place.layer, direction};
      const auto [it, added] = cell_ids_.emplace(key, cells_.size());
      if (added && cells_.size() == options_.cells) {
        cell_ids_.erase(it);
      } else {
        if (added) cells_.emplace_back(key, Point());
        cell = &cells_[it->second].second;
      }
    }
    const size_t ops = std::max<size_t>(pair_.target->ops().size(), 1);
    Point& point = run_[direction][static_cast<size_t>(next_op_ * options_.bins / ops)];
    for (size_t i = 0; i < count; ++i) {
      float& side = rows[i].result ? output : input;
      side = std::max(side, rows[i].measures[0]);
      if (cell) AddTo(cell, op, rows[i]);
      AddTo(&point, op, rows[i]);
      KeepRow(op, rows[i], text.substr(rows[i].begin, rows[i].end - rows[i].begin));
      ++next_row_;
    }
    next_row_ -= count;
    KeepOp(op, rows, count, input, output);
  }
  next_row_ += count;
  ++next_op_;
}

void RowWatch::AddTo(Point* point, const OpNote& op, const RowNote& row) {
  ++point->rows;
  point->errors += row.verdict == Verdict::kError;
  point->warnings += row.verdict == Verdict::kWarning;
  if (!row.result || !row.matched) return;
  if (row.measures[0] > point->worst[0]) point->worst_op = op.name;
  for (size_t m = 0; m < kMostMeasures; ++m) point->worst[m] = std::max(point->worst[m], row.measures[m]);
}

void RowWatch::KeepRow(const OpNote& op, const RowNote& row, std::string_view text) {
  const auto before = [](const KeptRow& a, const KeptRow& b) {
    if (a.blame != b.blame) return a.blame > b.blame;
    if (a.verdict != b.verdict) return a.verdict > b.verdict;
    if (a.matched != b.matched) return a.matched;
    if (a.error != b.error) return a.error > b.error;
    return a.index < b.index;
  };
  KeptRow kept{BlameOf(row.ruler), row.verdict, row.matched, row.measures[0], next_row_, op.stack, {}};
  if (rows_.size() == options_.rows && (rows_.empty() || !before(kept, rows_.front()))) return;
  kept.cells = text;
  Keep(&rows_, options_.rows, std::move(kept), before);
}

void RowWatch::KeepOp(const OpNote& op, const RowNote* rows, size_t count, float input, float output) {
  if (!op.matched || (output <= 0 && input <= 0)) return;
  KeptOp kept{op.name, Verdict::kPass, RulerVerdict::kNone, input, output, output, next_op_, next_row_, count};
  for (size_t i = 0; i < count; ++i) {
    kept.verdict = std::max(kept.verdict, rows[i].verdict);
    kept.ruler = std::max(kept.ruler, rows[i].ruler);
  }
  const auto before = [](const KeptOp& a, const KeptOp& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  };
  Keep(&worst_, options_.ops, KeptOp(kept), before);
  // What it adds: differences below the round-off of half precision say little about where they come from.
  constexpr float kFloor = 1e-6f;
  kept.score = output == kInfinity && input == kInfinity ? 0 : output / std::max(input, kFloor);
  if (input >= 0 && kept.score > 1) Keep(&added_, options_.ops, KeptOp(kept), before);
}

uint32_t RowWatch::IdOf(std::string_view name, std::vector<std::string_view>* names,
                        std::unordered_map<std::string_view, uint32_t>* ids) {
  const auto [it, added] = ids->emplace(name, static_cast<uint32_t>(names->size()));
  if (added) names->push_back(name);
  return it->second;
}

}  // namespace msprobe
