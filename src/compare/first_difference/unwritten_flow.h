// What a run makes of memory that nobody had written: it differs from run to run, and is no difference of the runs.
#pragma once

#include <string>
#include <unordered_set>

#include "base/slot_table.h"
#include "compare/first_difference/walk_types.h"

namespace msprobe {

class UnwrittenFlow {
 public:
  /// `in` outlives the object.
  explicit UnwrittenFlow(const WalkInput& in) : in_(in) {}

  /// Whether all that differs in op `i` is memory that nobody had written in either run, and what ops made of it.
  StatusOr<bool> Explains(size_t i);
  /// Whether it got as far as the result of a module, a gradient or what an op changes in place: then the run computes
  /// with it, and the first op that read it is a difference.
  bool Matters() const { return matters_; }
  /// The first op that read it.
  size_t first() const { return first_; }

 private:
  std::string KeyOf(const OpDiff& op, size_t row) const;
  bool ReadsNothingElse(const OpDiff& op, bool* any, bool* first_is_clean) const;
  void Note(size_t i, const OpDiff& op, bool first_is_clean);

  const WalkInput& in_;
  std::unordered_set<std::string> made_;  // by their values in both runs
  TextIds ops_;                           // that read it, by name
  size_t first_ = SIZE_MAX;
  bool matters_ = false;
};

}  // namespace msprobe
