// How far the elementary functions of torch's CPU kernels are from float64, function by function and dtype by dtype.
#pragma once

#include <optional>
#include <span>
#include <string_view>

#include "tensor/kernels/dtype.h"

namespace msprobe {

/// An element is as near as measured when it is at most `ulps` away, or `share` roundings of the largest input (of a
/// gradient: of the one that comes in).
struct FunctionBound {
  double ulps = 0, share = 0;
};

struct MeasuredFunction {
  std::string_view name;  // as torch spells it, "log1p"
  bool backward = false;
  FunctionBound single, half, bfloat;
};

std::span<const MeasuredFunction> MeasuredFunctions();
/// `api` as "log1p", "special.log1p", "log1p_" or "__add__"; nothing of what was not measured.
std::optional<FunctionBound> MeasuredBound(std::string_view api, bool backward, DType dtype);

}  // namespace msprobe
