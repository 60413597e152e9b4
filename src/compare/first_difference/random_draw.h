// Ops that give other results because the two runs drew other random numbers.
#pragma once

#include "base/status.h"
#include "compare/first_difference/walk_types.h"

namespace msprobe {

/// Whether an op may draw some.
bool DrawsRandomly(std::string_view op_name);

/// The random numbers of two runs, op by op. Another seed, device or release gives others from the first on: where some
/// were the same, what differs later is a difference.
class Draws {
 public:
  /// Both outlive the object; `alike` is set where some are the same.
  Draws(const WalkInput& in, bool* alike) : in_(in), alike_(*alike) {}

  /// Of an op whose inputs and results are bit-equal.
  Status NoteEqual(size_t op);
  /// Whether what differs in the op's results is no more than other random numbers explain: it draws some, is called
  /// alike, and its results are as large as a draw makes them.
  StatusOr<bool> AreOthers(size_t op) const;

 private:
  const WalkInput& in_;
  bool& alike_;
};

}  // namespace msprobe
