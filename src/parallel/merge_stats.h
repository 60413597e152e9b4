// Statistics of the parts of a tensor, put together.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "json/value.h"

namespace msprobe {

/// A statistic as the dump has it; integers stay integers.
struct StatNumber {
  enum class Kind : uint8_t { kNone, kInt, kDouble };
  Kind kind = Kind::kNone;
  int64_t i = 0;
  double d = 0;

  static StatNumber Of(const JsonValue* v);
  bool given() const { return kind != Kind::kNone; }
  double value() const { return kind == Kind::kInt ? static_cast<double>(i) : d; }
  std::string Text() const;  // as Python's str()
};

struct TensorStats {
  StatNumber max, min, mean, norm;
  double elements = -1;  // product of the shape; -1: not known
  static TensorStats Of(const JsonValue& leaf);
};

/// The largest magnitude; Max and Min are given.
double Amplitude(const TensorStats& s);

/// True for tensors whose statistics are merged: integers and floats, by their dtype as dumps write it.
bool IsMergedDtype(std::string_view dtype);

/// Max and Min equal, Mean and Norm up to what the order of a sum may change.
bool SameStats(const TensorStats& a, const TensorStats& b);

/// The whole of disjoint parts: max of Max, min of Min, Mean weighted by elements, root of the sum of squared Norms. A
/// statistic that some part lacks is that of the first part. NaN in a part is NaN in the whole. Where all parts were
/// recorded in the precision of `dtype`, the whole is rounded to it too. `info` receives a line per statistic.
TensorStats MergeParts(const std::vector<TensorStats>& parts, std::string_view dtype, std::string_view key,
                       std::vector<std::string>* info);

}  // namespace msprobe
