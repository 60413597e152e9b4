// What a weight is beside a plain copy, as its name, type and shape say.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "tensor/kernels/dtype.h"

namespace msprobe {

bool IsLora(std::string_view name);
/// What quantised models have beside their weights, and weights that they keep under other names.
bool IsScale(std::string_view name);
/// A weight in a few bits that is stored under a name of its own, so that it has no pair.
bool IsPackedWeight(std::string_view name);
/// Tables that a model computes by itself.
bool IsComputed(std::string_view name);
bool IsFewBits(DType type);
/// One of the shapes is a whole number of times the other, in one dimension.
bool IsShard(const std::vector<int64_t>& a, const std::vector<int64_t>& b);

}  // namespace msprobe
