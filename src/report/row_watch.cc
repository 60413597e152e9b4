#include "report/row_watch.h"

#include <algorithm>
#include <charconv>
#include <cmath>

#include "base/file.h"
#include "base/text.h"
#include "match/op_name.h"
#include "report/columns.h"

namespace msprobe {
namespace {

constexpr double kCoarsest = 1.6e-2;  // of bfloat16; that of float8 would hide too much
constexpr float kInfinity = std::numeric_limits<float>::infinity();

struct Measured {
  std::string_view column;
  bool similarity;
};
/// Columns that make sense as a curve. Differences in the tensor's own units do not: layers have different scales.
constexpr Measured kMeasured[] = {
    {"NormRelativeErr", false}, {"MaxRelativeErr", false},
    {"MinRelativeErr", false},  {"MeanRelativeErr", false},
    {"Cosine", true},           {"MaxAbsErr", false},
    {"EucDist", false},         {"One Thousandth Err Ratio", true},
};

/// The fields of a csv line, as they stand: quotes are only skipped over.
template <typename Take>
void ForEachField(std::string_view line, const Take& take) {
  size_t at = 0;
  for (size_t index = 0; at <= line.size(); ++index) {
    size_t end = at;
    bool quoted = false;
    while (end < line.size() && (quoted || line[end] != ',')) quoted ^= line[end++] == '"';
    if (!take(index, line.substr(at, end - at))) return;
    at = end + 1;
  }
}

/// -1 for what is no number.
float NumberOf(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  if (text == "inf" || text == "-inf" || text == "Nan" || text == "nan") return kInfinity;
  const bool percent = EndsWith(text, "%");
  if (percent) text.remove_suffix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return -1;
  return static_cast<float>(std::fabs(value) / (percent ? 100 : 1));
}

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
  RowBlock text;
  std::vector<OpNote> ops;
  std::vector<RowNote> rows;
  double tolerance = 0;  // the coarsest
};

StatusOr<std::unique_ptr<RowWatch>> RowWatch::Create(const DumpPair& pair, const TableSpec& spec,
                                                     const RowFormat& table, const WatchOptions& options) {
  std::unique_ptr<RowWatch> out(new RowWatch(pair, table, spec.older, options));
  if (!options.page) return out;
  TableSpec plain = spec;
  plain.stacks = nullptr;
  plain.ruler = false;
  plain.older = false;
  plain.replays = nullptr;
  out->csv_ = CreateCsvFormat(plain);
  out->columns_ = TableColumns(plain.mode, false, spec.custom);
  out->measures_ = {"error"};
  for (size_t i = 0; i < out->columns_.size(); ++i) {
    for (const auto& [column, similarity] : kMeasured) {
      if (out->columns_[i] != column || out->measures_.size() == kMostMeasures) continue;
      out->measured_.push_back({i, out->measures_.size(), similarity});
      out->measures_.push_back(column);
    }
  }
  // Without construct.json APIs are in no layer; the comparison itself says what is wrong with a bad one.
  StatusOr<std::shared_ptr<const ParentIndex>> parents = pair.target->Parents();
  out->places_ = std::make_unique<LayerPlaces>(parents.ok() ? std::move(*parents) : nullptr);
  for (auto& points : out->run_) points.resize(options.bins);
  return out;
}

void RowWatch::ReadMeasures(std::string_view text, Measures* out) const {
  size_t next = 0;
  if (measured_.empty()) return;
  ForEachField(text, [&](size_t index, std::string_view field) {
    if (index != measured_[next].index) return true;
    const float value = NumberOf(field);
    (*out)[measured_[next].measure] = measured_[next].similarity && value >= 0 ? std::max(0.f, 1 - value) : value;
    return ++next < measured_.size();
  });
}

bool RowWatch::IsSuspect(const OpDiff& op, size_t row) const {
  if (!older_) return op.rows[row].verdict != Verdict::kPass;
  const std::string_view said = OlderVerdict(op, row, pair_.options.mode);
  return said == "Warning" || said == "Different" || said == "No";
}

void RowWatch::AppendOp(const OpDiff& op, int stack, RowBlock* block) const {
  table_.AppendOp(op, stack, block);
  if (!block->notes) block->notes = std::make_unique<Notes>();
  Notes& notes = static_cast<Notes&>(*block->notes);
  size_t text_begin = notes.text.bytes.size();
  const size_t first = notes.text.row_ends.size();
  if (csv_) {
    csv_->AppendOp(op, -1, &notes.text);
    if (!IsIgnoredApi(op.op)) notes.tolerance = std::max(notes.tolerance, OpTolerance(op));
  }
  for (size_t i = 0; i < op.rows_used; ++i) {
    RowNote row;
    row.verdict = op.rows[i].verdict;
    row.suspect = IsSuspect(op, i);
    row.result = IsResult(op.target[i].state);
    row.matched = op.rows[i].golden != kNoItem;
    row.measures.fill(-1);
    if (csv_) {
      row.begin = text_begin;
      row.end = text_begin = notes.text.row_ends[first + i];
      row.measures[0] = static_cast<float>(RowError(op, i, pair_.options.mode));
      const std::string_view line = std::string_view(notes.text.bytes).substr(row.begin, row.end - row.begin);
      if (row.matched) ReadMeasures(line.substr(0, line.size() - 1), &row.measures);
    }
    notes.rows.push_back(row);
  }
  notes.ops.push_back(
      {op.op, places_ ? places_->Of(op.op) : LayerPlace(), op.matched, csv_ ? stack : -1, notes.rows.size()});
}

void RowWatch::Take(const RowBlock& block) {
  if (!block.notes) return;  // a block without ops
  const Notes& notes = static_cast<const Notes&>(*block.notes);
  roundoff_ = std::max(roundoff_, std::min(notes.tolerance, kCoarsest));
  size_t row = 0;
  for (const OpNote& op : notes.ops) {
    TakeOp(op, notes.rows.data() + row, op.rows_end - row, notes.text.bytes);
    row = op.rows_end;
  }
}

void RowWatch::TakeOp(const OpNote& op, const RowNote* rows, size_t count, std::string_view text) {
  for (size_t i = 0; i < count && !advice_.found(); ++i) {
    if (!rows[i].suspect) continue;
    advice_ = Advise(op.name, rows[i].result, next_row_ + i + 2);
  }
  if (csv_) {
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
      const std::string_view line = text.substr(rows[i].begin, rows[i].end - rows[i].begin);
      KeepRow(op, rows[i], line.substr(0, line.size() - 1));
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
    if (a.verdict != b.verdict) return a.verdict > b.verdict;
    if (a.matched != b.matched) return a.matched;
    if (a.error != b.error) return a.error > b.error;
    return a.index < b.index;
  };
  KeptRow kept{row.verdict, row.matched, row.measures[0], next_row_, op.stack, {}};
  if (rows_.size() == options_.rows && (rows_.empty() || !before(kept, rows_.front()))) return;
  kept.text = text;
  Keep(&rows_, options_.rows, std::move(kept), before);
}

void RowWatch::KeepOp(const OpNote& op, const RowNote* rows, size_t count, float input, float output) {
  if (!op.matched || (output <= 0 && input <= 0)) return;
  KeptOp kept{op.name, Verdict::kPass, input, output, output, next_op_, next_row_, count};
  for (size_t i = 0; i < count; ++i) kept.verdict = std::max(kept.verdict, rows[i].verdict);
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
