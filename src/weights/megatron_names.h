// The names of Megatron's versions as the newest one writes them.
#pragma once

#include <string>
#include <vector>

#include "weights/weight_tensor.h"

namespace msprobe {

/// What the older versions and Transformer Engine call otherwise, under the name of mcore's local layers. Older
/// versions call the one stack of a model its encoder; not so where there are `two_stacks`.
std::string McoreName(std::string name, bool two_stacks);
/// Whether names have layers of an encoder and of a decoder.
bool HasTwoStacks(const std::vector<WeightTensor>& tensors);

/// How the ranks of tensor parallelism hold a tensor of that name.
enum class TensorSplit : uint8_t { kCopies, kRows, kColumns };
TensorSplit SplitOf(const std::string& name);

}  // namespace msprobe
