// The graph of a rank in memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "view/file/match_edits.h"
#include "view/file/tree.h"

namespace msprobe::view {

struct GraphMemo;

/// Both sides of one rank at one step.
struct GraphSides {
  Tree target, golden;
  int64_t step = 0, rank = 0;
  bool compared = false;
  std::shared_ptr<const MatchEdits> edits;  ///< what is in the graph of them; null: the graph is as the file has it
  std::shared_ptr<GraphMemo> memo;          ///< of whoever asks about it; a graph that is changed gets a new one
  /// Names that graphs of a file share are not counted.
  size_t bytes() const { return target.bytes() + golden.bytes() + sizeof(*this); }
};

}  // namespace msprobe::view
