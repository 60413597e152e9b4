// Which part of a tensor is recorded: the configuration's slices, and the tokens of one request.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace msprobe {

struct SliceRule {
  int dim = 0;
  std::optional<int64_t> size;  // only in tensors whose dimension has this length
  int64_t begin = 0;            // negative numbers count from the end
  std::optional<int64_t> end;   // exclusive
};

/// Narrows a tensor's shape as tensor[begin:end] does; of several rules for a dimension the last that applies counts.
/// Returns by how many elements its first one moves.
int64_t ApplySlices(const std::vector<SliceRule>& rules, int ndim, const int64_t* strides, int64_t* shape);

/// Where the part of a dimension of this length begins.
int64_t SliceBegin(const std::vector<SliceRule>& rules, int dim, int64_t length);

}  // namespace msprobe
