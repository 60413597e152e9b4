// The rows of `--rows differing`: those that are neither bit-equal, round-off nor inherited.
#pragma once

#include <string>
#include <vector>

#include "report/rows/row_sink.h"

namespace msprobe {

/// What a first pass over a pair leaves for the second: an op that may have rows for the table.
struct ChosenOp {
  uint32_t op = 0;
  RulerContext context;
};

/// Marks ops with rows that differ, or that have no partner. Writes nothing.
class RowMarks : public RowSink {
 public:
  explicit RowMarks(CompareMode mode) : mode_(mode) {}
  void AppendOp(const OpDiff& op, int stack, OpBlock* block) const override;
  Status Take(OpBlock&& block) override;
  Status Commit() override { return OkStatus(); }
  const std::vector<std::string>& paths() const override { return paths_; }

  /// Marks ops that differ by more than round-off before it is known what explains that: they may have rows that
  /// inherit, whatever the verdict of the op.
  void NoteReached(const OpDistances& distances);
  /// By the contexts of all ops: those with rows that the table, or its count of inherited rows, may hold.
  BigArray<ChosenOp> Choose(const RulerContexts& contexts) const;

 private:
  enum Mark : uint8_t { kDiffers = 1, kAlone = 2, kReached = 4 };
  const CompareMode mode_;
  BigArray<uint8_t> marks_;  // of each op
  std::vector<std::string> paths_;
};

/// Whether an op of `verdict` may have rows for the table; others have inherited rows at most.
bool MayHaveRows(RulerVerdict verdict);

/// Rows of one pair for the table of all.
class DifferingRows : public RowSink {
 public:
  /// `table` formats the rows. All that is given must stay.
  DifferingRows(const DumpPair& pair, const FilePair& files, const RowSettings& rows, const ResultTable& table)
      : pair_(pair), files_(files), columns_(rows), table_(table) {}
  /// Of a table of such rows.
  static std::vector<std::string> Titles(const RowSettings& rows);

  void AppendOp(const OpDiff& op, int stack, OpBlock* block) const override;
  Status Take(OpBlock&& block) override;
  Status Commit() override { return OkStatus(); }
  const std::vector<std::string>& paths() const override { return paths_; }

  RowBlock& rows() { return rows_; }
  uint64_t inherited() const { return inherited_; }

 private:
  bool IsIn(const OpDiff& op, size_t row) const;
  const DumpPair& pair_;
  const FilePair& files_;
  const RowColumns columns_;
  const ResultTable& table_;
  RowBlock rows_;
  uint64_t inherited_ = 0;
  std::vector<std::string> paths_;
};

}  // namespace msprobe
