// What `msprobe tolerance` prints: the line of a test that holds an op to what rounding allows.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {

struct ToleranceQuery {
  std::string op;  // "matmul", "torch.exp"
  DType dtype = DType::kFloat32;
  bool backward = false;                     // of the gradient of a function of each element
  std::vector<std::vector<int64_t>> shapes;  // of the inputs; they tell how long sums are
  int64_t terms = 0;                         // how long sums are; 0: as the shapes say
};

struct ToleranceLine {
  std::string line, why;  // Python; what it comes from
  std::string rule;       // as in the column Rule of acc_check
  double terms = 1;
};

/// "64x512" as sizes; an error names what is wrong.
StatusOr<std::vector<int64_t>> ParseShape(const std::string& text);
StatusOr<ToleranceLine> ToleranceOf(const ToleranceQuery& query);

}  // namespace msprobe
