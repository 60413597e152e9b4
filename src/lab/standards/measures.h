// The figures of mindstudio-probe's standards for two results of an op, computed as numpy computes them: in the width
// of their types, sums in numpy's order.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "lab/standards/figure.h"
#include "lab/standards/standard.h"

namespace msprobe {

/// Two floating results. Values are exact; `width` is that in which the arithmetic goes on: bfloat16 becomes float32.
struct ResultValues {
  DType dtype = DType::kFloat32;
  std::vector<double> values;
  Width width() const {
    if (dtype == DType::kFloat64) return Width::kDouble;
    return dtype == DType::kFloat16 ? Width::kHalf : Width::kSingle;
  }
};
struct ResultPair {
  ResultValues device, bench;
};

/// The columns of a details file between the shape and the status, in their order.
enum class Measure : uint8_t {
  kCosine,
  kMaxAbsolute,
  kHundredth,
  kThousandth,
  kTenThousandth,
  kErrorRate,
  kBalance,
  kRmse,
  kSmallValue,
  kMaxRelative,
  kMeanRelative,
  kInfNan,
  kRelativeRate,
  kAbsoluteRate,
  kMaxUlp,
  kMeanUlp,
  kUlpShare,
};
inline constexpr size_t kMeasures = 17;

class FigureRow {
 public:
  LabFigure& operator[](Measure m) { return figures_[static_cast<size_t>(m)]; }
  const LabFigure& operator[](Measure m) const { return figures_[static_cast<size_t>(m)]; }
  const std::array<LabFigure, kMeasures>& all() const { return figures_; }

 private:
  std::array<LabFigure, kMeasures> figures_;
};

/// Errors element by element, which several standards use.
class ResultErrors {
 public:
  /// Both sides have the same number of elements, at least one.
  explicit ResultErrors(const ResultPair& pair);

  const ResultPair& pair() const { return pair_; }
  size_t size() const { return absolute_.size(); }
  Width width() const { return width_; }
  const std::vector<double>& absolute() const { return absolute_; }
  const std::vector<double>& relative() const { return relative_; }
  bool Finite(size_t i) const { return finite_[i]; }
  double Bench(size_t i) const { return pair_.bench.values[i]; }
  double Device(size_t i) const { return pair_.device.values[i]; }
  /// Of the device's type.
  double BenchAsDevice(size_t i) const { return rounded_[i]; }
  /// |bench| with the type's epsilon.
  double Magnitude(size_t i) const { return magnitude_[i]; }

 private:
  const ResultPair& pair_;
  Width width_;
  std::vector<double> absolute_, relative_, rounded_, magnitude_;
  std::vector<char> finite_;
};

/// Magnitudes; NaN if one of them is NaN.
struct LargestValues {
  double device, bench, absolute;  // absolute: of the errors
};

/// Fills the columns of kBenchmark without ResultErrors. False, and nothing filled, where elements are not finite or
/// the device has float16.
bool MeasureBenchmarkAtOnce(const ResultPair& pair, FigureRow* row, LargestValues* largest);

/// Fills the columns of a standard. kBinary of floating results, too.
void MeasureByStandard(Standard standard, const ResultErrors& errors, FigureRow* row);

/// The largest magnitude; NaN if one of them is NaN, 0 without values.
double LargestMagnitude(const std::vector<double>& values);

/// np.mean of `values` in this width.
double NumpyMean(const std::vector<double>& values, Width width);

}  // namespace msprobe
