// Where in an op a value stands, as the names of tensor files say it: `{op}.input.0.1`, `{op}.kwargs.mask`.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "capture/record_nodes.h"

namespace msprobe {

/// Follows the nodes of a record as they are appended; a record that does not save tensors never pays for it.
class RecordPath {
 public:
  /// Name, without ending, of the value that node number `node` of `record` is or will be. Going back is allowed and
  /// starts over.
  std::string NameAt(const RecordNodes& record, size_t node);
  void Reset() { at_ = 0, levels_.clear(); }

 private:
  struct Level {
    bool list = false;
    bool literal = false;  // the key is one of ours
    int64_t index = 0;     // of the next value of a list
    size_t key = 0, length = 0;
    const char* text = nullptr;
  };
  void Take(const RecordNodes& record, size_t node);

  size_t at_ = 0;
  std::vector<Level> levels_;  // the first is the op's own object
};

}  // namespace msprobe
