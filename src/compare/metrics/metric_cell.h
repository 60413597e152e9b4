// One cell of the columns of metrics.
#pragma once

#include <cstdint>
#include <string>

namespace msprobe {

struct MetricCell {
  enum class Kind : uint8_t { kUnsupported, kNumber, kNan, kNA, kShapeUnmatched };
  Kind kind = Kind::kUnsupported;
  double value = 0;
  bool IsNumber() const { return kind == Kind::kNumber; }
  /// "unsupported", "Nan", "N/A", "shape unmatched", or the number as Python writes it.
  void AppendText(std::string* out) const;

  static MetricCell Nan() { return {Kind::kNan, 0}; }
  static MetricCell Number(double v) { return v != v ? Nan() : MetricCell{Kind::kNumber, v}; }
  /// With twelve decimals, as most metrics have.
  static MetricCell Rounded(double v);
};

/// As Python's float("{:.12f}".format(v)).
double RoundedTo(int decimals, double v);

}  // namespace msprobe
