#include "report/rows/differing_rows.h"

#include <algorithm>

#include "compare/round_off/no_value.h"

namespace msprobe {
namespace {

struct Marks : BlockNotes {
  std::vector<uint8_t> of_ops;
};

struct Inherited : BlockNotes {
  uint64_t rows = 0;
};

bool IsUnreadable(const OpDiff& op, size_t row, CompareMode mode) {
  return mode == CompareMode::kTensor && op.tensors[row].outcome == TensorOutcome::kUnreadable;
}

bool Agrees(RulerVerdict verdict) { return verdict == RulerVerdict::kBitEqual || verdict == RulerVerdict::kRoundOff; }

}  // namespace

bool MayHaveRows(RulerVerdict verdict) { return !Agrees(verdict) && verdict != RulerVerdict::kInherited; }

void RowMarks::AppendOp(const OpDiff& op, int, OpBlock* block) const {
  if (!block->notes) block->notes = std::make_unique<Marks>();
  uint8_t& mark = static_cast<Marks&>(*block->notes).of_ops.emplace_back();
  if (op.skipped) return;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (!PartnerOf(op, i) || IsUnreadable(op, i, mode_)) {
      mark |= kAlone;
    } else if (!(mark & kDiffers) && (RowError(op, i, mode_) != 0 || ArgumentDiffers(op, i, mode_))) {
      mark |= kDiffers;
    }
  }
}

Status RowMarks::Take(OpBlock&& block) {
  if (!block.notes) return OkStatus();
  const std::vector<uint8_t>& marks = static_cast<Marks&>(*block.notes).of_ops;
  marks_.append(marks.data(), marks.size());
  return OkStatus();
}

void RowMarks::NoteReached(const OpDistances& distances) {
  for (size_t i = 0; i < marks_.size(); ++i) {
    if (distances[i].input > 1 || distances[i].output > 1) marks_[i] |= kReached;
  }
}

BigArray<ChosenOp> RowMarks::Choose(const RulerContexts& contexts) const {
  BigArray<ChosenOp> out;
  for (size_t i = 0; i < marks_.size(); ++i) {
    const bool differs = (marks_[i] & kDiffers) && (!Agrees(contexts[i].verdict) || (marks_[i] & kReached));
    if (differs || (marks_[i] & kAlone)) out.push_back({static_cast<uint32_t>(i), contexts[i]});
  }
  return out;
}

std::vector<std::string> DifferingRows::Titles(const RowSettings& rows) {
  std::vector<std::string> out{"Step", "Rank"};
  const RowColumns columns(rows);
  out.insert(out.end(), columns.titles().begin(), columns.titles().end());
  return out;
}

bool DifferingRows::IsIn(const OpDiff& op, size_t row) const {
  const RulerCell& ruler = op.ruler[row];
  if (ruler.verdict != RulerVerdict::kNone) return Begins(ruler.verdict);
  if (PartnerOf(op, row)) return ruler.error != 0 || IsUnreadable(op, row, columns_.options().mode);
  if (op.matched) return true;
  const auto at = pair_.target->FindOp(op.op);
  return !at || !pair_.plan.NotSeen(*at);
}

void DifferingRows::AppendOp(const OpDiff& op, int stack, OpBlock* block) const {
  if (op.skipped) return;
  if (!block->notes) block->notes = std::make_unique<Inherited>();
  uint64_t& inherited = static_cast<Inherited&>(*block->notes).rows;
  const StackFile* stacks = columns_.options().stacks;
  std::string stack_text;
  RowCells row;
  for (size_t i = 0; i < op.rows_used; ++i) {
    inherited += op.ruler[i].verdict == RulerVerdict::kInherited;
    if (!IsIn(op, i)) continue;
    columns_.Fill(op, i, stack, nullptr, &row);
    // The table has the stacks of all ranks, not those of one file.
    for (Cell& cell : row.cells) {
      if (cell.kind != Cell::Kind::kShared) continue;
      stack_text = StackCell(stacks->Frames(static_cast<uint32_t>(cell.integer)));
      cell = Cell::Text(stack_text);
    }
    const auto number = [](int n) { return n < 0 ? Cell::Word(kNotAvailableCell) : Cell::Integer(n); };
    row.cells.insert(row.cells.begin(), {number(files_.step), number(files_.rank)});
    table_.AppendRow(row.cells, Cell::Color::kNone, block);
    stack = -1;
  }
}

Status DifferingRows::Take(OpBlock&& block) {
  if (block.notes) inherited_ += static_cast<Inherited&>(*block.notes).rows;
  const uint64_t before = rows_.bytes.size();
  rows_.bytes += block.bytes;
  for (const uint64_t end : block.row_ends) rows_.row_ends.push_back(before + end);
  return OkStatus();
}

}  // namespace msprobe
