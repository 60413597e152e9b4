// A result judged element by element: each against its own bound.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>

#include "lab/element_block.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {

struct ResultItem;

/// What the elements of a result say.
struct ElementFigures {
  bool bounded = false;                         // the rule of the item gave a bound
  double error = 0, limit = 0;                  // in ulp, of the element that is furthest beyond its own limit
  double rtol = 0;                              // the smallest that passes with atol = 0; infinite where the truth is 0
  double atol = 0;                              // the smallest that passes with an rtol of one ulp
  uint64_t nan = 0, infinite = 0, flushed = 0;  // elements of another class; subnormals that became 0
  uint64_t subnormal = 0;                       // of the truth
  /// By the power of two of the truth (rounded down to a multiple of 4; kZeroBin of zeros): elements in each class.
  std::map<int, std::array<uint64_t, kUlpClasses.size() + 1>> histogram;
  static constexpr int kZeroBin = -2000;
};

/// Of a tensor of floats. `dtype` that of the device.
ElementFigures JudgeElements(const ResultItem& item, DType dtype);

/// "nan 2, inf 1, flushed 7 of 9 subnormal"; "" where nothing is of another class.
std::string ClassesText(const ElementFigures& figures);
/// "2^-4:12/3/0/0/0/0/0 2^0:4/0/0/0/0/0/0".
std::string HistogramText(const ElementFigures& figures);

}  // namespace msprobe
