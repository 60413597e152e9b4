// The order in which the ops of a side ran.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "view/file/tree.h"
#include "view/file/vis_file.h"

namespace msprobe::view {

/// The order of execution of one side.
class Execution {
 public:
  /// `source`: "NPU" or "Bench".
  static StatusOr<Execution> Load(const VisFile& file, const Tree& tree, int64_t step, int64_t rank,
                                  std::string_view source);
  /// The op that ran before (-1) or after (1); kNoNode at the ends, and for what did not run.
  uint32_t Beside(const Tree& tree, uint32_t node, int direction) const;
  struct Run {
    uint32_t first, count;
  };
  /// Nodes that stand together and ran one after the other.
  const std::vector<Run>& runs() const { return runs_; }

 private:
  std::vector<Run> runs_;
};

}  // namespace msprobe::view
