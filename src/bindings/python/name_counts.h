// Numbers of the ops of one name.
#pragma once

#include <cstdint>
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
};
/// `base` is interned; the counts live as long as the process.
NameCounts* CountsOf(const std::string* base);

}  // namespace msprobe
