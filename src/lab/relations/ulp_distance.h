// How far two results lie apart, in ulp.
#pragma once

#include <cstdint>
#include <string>

#include "tensor/kernels/dtype.h"

namespace msprobe {

/// Both zeros are equal, and so are two NaN; a NaN or an infinity is infinitely far from everything else.
struct UlpDistance {
  uint64_t elements = 0, differ = 0;
  /// Of an element: in units of the last place at the larger of its two values. Of integers: their difference.
  double worst = 0;
  /// In units of the last place at the largest finite value of the two results: what is left of a sum whose terms
  /// cancel each other out is small, and far away by its own measure.
  double of_largest = 0;

  void Add(const UlpDistance& other);
};

/// Elements of `got` and `want`, in the byte order of the machine. The ulp is that of `as`, else that of the coarser
/// one of the two dtypes. False when the sizes do not fit or a dtype is none of float16, bfloat16, float32, float64,
/// int64, bool.
bool MeasureUlp(DType got_type, const std::string& got, DType want_type, const std::string& want, UlpDistance* out,
                DType as = DType::kUnknown);

}  // namespace msprobe
