// What was decided while the graphs of ranks became one, for people and tests.
#pragma once

#include <string>
#include <utility>
#include <vector>

namespace msprobe {

/// A node that another rank than the first brought in.
struct MergeMove {
  int rank = 0;
  std::string from, to, parent;
};

/// A node that shows the inputs or outputs of the last stage or chunk.
struct MergeTake {
  std::string node;
  bool output = false;
  int rank = 0;
  std::string from;
};

struct MergeDecisions {
  std::vector<MergeMove> moved;  // only the tops of subtrees
  std::vector<MergeTake> taken;
  std::vector<std::pair<std::string, std::string>> reduced;  // call, and the reduction that its output becomes
};

}  // namespace msprobe
