// Comparing two dumps block by block: each block of ops is parsed, compared and formatted by one thread and handed on
// in order.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "compare/pair/dump_pair.h"
#include "compare/round_off/ruler.h"
#include "sheet/table.h"

namespace msprobe {

/// What a second reader of the rows keeps of a block, on its way to where blocks are in order.
struct BlockNotes {
  virtual ~BlockNotes() = default;
};

/// The formatted rows of a block of ops.
struct OpBlock : RowBlock {
  std::string log;  // lines about the rows, when they were asked for
  std::unique_ptr<BlockNotes> notes;
};

/// Formats rows; called by several threads at once.
class RowFormat {
 public:
  virtual ~RowFormat() = default;
  /// Appends one row for each target item. `stack` is the id of the op's stack, -1 without.
  virtual void AppendOp(const OpDiff& op, int stack, OpBlock* block) const = 0;
};

struct CompareCounts {
  uint64_t rows = 0, pass = 0, warning = 0, error = 0;
  uint64_t ops = 0, matched_ops = 0;
};

struct CompareOutcome {
  CompareCounts counts;
  uint64_t unread = 0;         // tensor mode: rows whose files are missing or damaged
  std::string first_unread;    // and what is wrong with the first
  uint64_t custom_failed = 0;  // rows where a metric of the user's failed
  std::string first_custom_failed;
  OpDistances distances;
};

/// Called now and then with the share of the work that is done, 0 to 1, on the calling thread.
using Progress = std::function<void(double)>;

/// Called with the distances of the ops so far, in order, on the calling thread.
using SeenSoFar = std::function<void(const OpDistances&)>;

/// Compares `pair` and gives the blocks to `take` in the order of the target. Memory is bounded by a few blocks, each
/// of some hundred ops or, where ops are long, about a megabyte of the dumps' text. With `log`, blocks of tensor mode
/// also hold a line of text for each row.
StatusOr<CompareOutcome> ComparePair(const DumpPair& pair, const RowFormat& format,
                                     const std::function<Status(OpBlock&&)>& take, const Progress& progress,
                                     const SeenSoFar& seen = {}, bool log = false);

/// Number of rows that a comparison of this target will have.
StatusOr<uint64_t> CountRows(const DumpFile& target);

}  // namespace msprobe
