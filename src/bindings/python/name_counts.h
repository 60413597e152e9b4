// Numbers of the ops of one name.
#pragma once

#include <cstdint>
#include <set>
#include <string>

namespace msprobe {

/// Numbers a name's entries within a step. By name, for several models may have the same names.
struct Counter {
  int32_t last = -1;
  uint64_t generation = 0;
  int32_t Next();
};
struct NameCounts {
  Counter forwards, param_grads;

  /// Of a backward of the call of this number. The first has the number of the call; a further one, through a graph
  /// that was kept, has one that no call and no backward of the step has so far.
  int32_t NumberOfBackward(int32_t call, bool first);

 private:
  std::set<int32_t> further_;
  uint64_t generation_ = 0;
};
/// `base` is interned; the counts live as long as the process.
NameCounts* CountsOf(const std::string* base);

}  // namespace msprobe
