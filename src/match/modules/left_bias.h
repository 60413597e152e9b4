// Layers that give their bias beside the result, as Megatron's do: they have not added it.
#pragma once

#include <cstdint>
#include <span>

namespace msprobe {

/// Of a tensor that a layer gives: its elements, and the size of its last dimension.
struct GivenTensor {
  int64_t elements = 0, last = 0;
};

/// Whether a tensor behind the first one is as long as that one is wide, and no more.
inline bool LeavesBias(std::span<const GivenTensor> given) {
  for (size_t i = 1; i < given.size(); ++i) {
    if (given[i].elements == given[0].last && given[i].elements < given[0].elements) return true;
  }
  return false;
}

}  // namespace msprobe
