// The names of Megatron's versions as the newest one writes them.
#pragma once

#include <string>

namespace msprobe {

/// What the older versions and Transformer Engine call otherwise, under the name of mcore's local layers.
std::string McoreName(std::string name);

/// How the ranks of tensor parallelism hold a tensor of that name.
enum class TensorSplit : uint8_t { kCopies, kRows, kColumns };
TensorSplit SplitOf(const std::string& name);

}  // namespace msprobe
