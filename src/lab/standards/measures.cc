#include "lab/standards/measures.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>

#include "lab/standards/plain_pass.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr double kBFloat16Epsilon = 0.00390625;  // as the standard has it: half of torch.finfo
constexpr double kManyUlps32 = 32, kManyUlps16 = 1;
constexpr double kThousandthLimit = 0.001;

DType FloatOfWidth(Width width) {
  return width == Width::kHalf ? DType::kFloat16 : width == Width::kSingle ? DType::kFloat32 : DType::kFloat64;
}

double EpsilonOf(const ResultPair& pair) {
  if (pair.device.dtype == DType::kBFloat16) return kBFloat16Epsilon;
  return InfoOf(FloatOfWidth(pair.bench.width())).eps();
}

double LargestOf(const ResultValues& values) {
  if (values.dtype == DType::kBFloat16) return InfoOf(DType::kBFloat16).largest;
  return InfoOf(FloatOfWidth(values.width())).largest;
}

/// np.sum and np.mean of this width: halves are summed up in float32.
double SumOf(const double* values, size_t count, Width width) {
  return WithRounding(std::max(width, Width::kSingle), [&](auto round) { return PairwiseSum(values, count, round); });
}
double MeanOf(double sum, size_t count, Width width) {
  return RoundTo(width, RoundTo(std::max(width, Width::kSingle), sum / static_cast<double>(count)));
}

LabFigure Share(uint64_t bad, uint64_t of) {
  return of == 0 ? LabFigure::Whole(0) : LabFigure::Double(static_cast<double>(bad) / static_cast<double>(of));
}

/// |device - bench| of a type, where NaN stays NaN.
double Clipped(double v, double largest) { return std::isnan(v) ? v : std::clamp(v, -largest, largest); }

class Thresholds {
 public:
  Thresholds(const ResultErrors& errors, double small_value) : errors_(errors) {
    const Width bench = errors.pair().bench.width();
    small_ = RoundTo(bench, small_value);
  }
  bool Small(size_t i) const { return errors_.Finite(i) && std::fabs(errors_.Bench(i)) <= small_; }

 private:
  const ResultErrors& errors_;
  double small_;
};

LabFigure BalanceOf(int64_t larger, int64_t smaller, size_t of) {
  return LabFigure::Double(static_cast<double>(std::abs(larger - smaller)) / static_cast<double>(of));
}

LabFigure BalanceOf(const ResultErrors& e) {
  int64_t larger = 0, smaller = 0;
  WithRounding(e.pair().device.width(), [&](auto round) {
    for (size_t i = 0; i < e.size(); ++i) {
      const double apart = round(e.Device(i) - e.BenchAsDevice(i));
      larger += apart > 0;
      smaller += apart < 0;
    }
  });
  return BalanceOf(larger, smaller, e.size());
}

/// sqrt(mean of squares), those of `masked` elements of `of` are 0.
LabFigure RmseOf(double mean, uint64_t masked, size_t of) {
  const auto n = static_cast<double>(of);
  return LabFigure::Double(std::sqrt(mean * (n / (n - static_cast<double>(masked) + 0.0001) + 0.0001)));
}

void MeasureBenchmark(const ResultErrors& e, FigureRow* row) {
  const StandardLimits& limits = LimitsOf(e.pair().device.dtype);
  const Thresholds thresholds(e, limits.small_value);
  const double small_error = RoundTo(e.width(), limits.small_value_benchmark);
  uint64_t small = 0, small_bad = 0, masked = 0, kept = 0;
  std::vector<double> squares(e.size()), relative(e.size());
  double largest = -1;
  bool not_a_number = false;
  WithRounding(e.width(), [&](auto round) {
    const double *const absolutes = e.absolute().data(), *const relatives = e.relative().data();
    for (size_t i = 0; i < e.size(); ++i) {
      const bool is_small = thresholds.Small(i), counts = e.Finite(i) && !is_small;
      const double absolute = absolutes[i], share = relatives[i];
      small += is_small;
      small_bad += is_small && absolute > small_error;
      masked += !counts;
      squares[i] = counts ? round(absolute * absolute) : 0;
      relative[kept] = share;
      kept += counts && share >= 0;
      largest = counts && share > largest ? share : largest;
      not_a_number |= counts && std::isnan(share);
    }
  });
  relative.resize(kept);
  if (not_a_number) largest = NAN;
  (*row)[Measure::kSmallValue] = Share(small_bad, small);
  (*row)[Measure::kRmse] = RmseOf(NumpyMean(squares, e.width()), masked, e.size());
  (*row)[Measure::kBalance] = BalanceOf(e);
  (*row)[Measure::kMaxRelative] = largest >= 0 ? LabFigure::Of(largest, e.width()) : LabFigure::Whole(0);
  (*row)[Measure::kMeanRelative] =
      relative.empty() ? LabFigure::Whole(0) : LabFigure::Of(NumpyMean(relative, e.width()), e.width());
}

/// Elements that are not finite on both sides and are no limits of the type, either.
LabFigure InfNanRate(const ResultErrors& e, double bound) {
  const ResultPair& pair = e.pair();
  const Width device = pair.device.width();
  const Width both = std::max(device, pair.bench.width());
  const double largest = LargestOf(pair.device), limit = RoundTo(both, bound);
  uint64_t all = 0, bad = 0;
  for (size_t i = 0; i < e.size(); ++i) {
    if (e.Finite(i)) continue;
    ++all;
    const double ours = Clipped(e.Device(i), largest), theirs = Clipped(e.BenchAsDevice(i), largest);
    const double apart = RoundTo(device, std::fabs(RoundTo(device, ours - theirs)));
    const bool near = RoundTo(both, apart / e.Magnitude(i)) <= limit;
    bad += !near && !(std::isnan(ours) && std::isnan(theirs));
  }
  return Share(bad, all);
}

void MeasureLimits(const ResultErrors& e, double small_value, double relative, double absolute, FigureRow* row,
                   double bound) {
  const Thresholds thresholds(e, small_value);
  const double relative_limit = RoundTo(e.width(), relative), absolute_limit = RoundTo(e.width(), absolute);
  uint64_t small = 0, small_bad = 0, normal = 0, normal_bad = 0;
  for (size_t i = 0; i < e.size(); ++i) {
    if (!e.Finite(i)) continue;
    if (thresholds.Small(i)) {
      ++small;
      small_bad += e.absolute()[i] > absolute_limit;
    } else {
      ++normal;
      normal_bad += e.relative()[i] > relative_limit;
    }
  }
  (*row)[Measure::kInfNan] = InfNanRate(e, bound);
  (*row)[Measure::kRelativeRate] = Share(normal_bad, normal);
  (*row)[Measure::kAbsoluteRate] = Share(small_bad, small);
}

struct UlpLayout {
  double smallest_power, bits;
};

/// The standard counts in units of float32 where the type is not shorter.
UlpLayout LayoutOf(DType dtype) {
  const FInfo& info = InfoOf(IsFloating(dtype) && ElementSize(dtype) == 2 ? dtype : DType::kFloat32);
  return {static_cast<double>(info.least_power), static_cast<double>(info.fraction_bits())};
}

constexpr int kFractionBits = 52, kBias = 1023, kSurePower = 120;  // 2^120 is a normal number in all widths but half

double PowerOfTwo(double exponent, Width width) {
  if (width != Width::kHalf && std::fabs(exponent) <= kSurePower && exponent == std::floor(exponent))
    return std::bit_cast<double>(static_cast<uint64_t>(static_cast<int>(exponent) + kBias) << kFractionBits);
  return width == Width::kSingle ? static_cast<double>(std::exp2(static_cast<float>(exponent)))
                                 : RoundTo(width, std::exp2(exponent));
}

double Logarithm(double v, Width width) {
  return width == Width::kDouble ? std::log2(v) : RoundTo(width, static_cast<double>(std::log2(static_cast<float>(v))));
}

/// std::floor of the logarithm as its width has it: the exponent, but for values so near a power of two that the
/// logarithm rounds to it.
double FloorOfLogarithm(double v, Width width) {
  const auto bits = std::bit_cast<uint64_t>(v);
  const auto power = static_cast<int>(bits >> kFractionBits),
             high = static_cast<int>(bits >> (kFractionBits - 10)) & 1023;
  const bool sure = width != Width::kHalf && power > 0 && power < 2 * kBias + 1 && high > 0 && high < 1023;
  return sure ? power - kBias : std::floor(Logarithm(v, width));
}

/// The distance of one element of a float8 type in units of its last place, which tapers off with the exponent.
double Float8Ulps(double bench, double device) {
  const double tiny = std::ldexp(1.0, -1000);
  const double power = std::max(std::log2(std::fabs(bench) + tiny), -22.0);
  const double exponent = std::floor(power), size = std::fabs(exponent);
  const int bits = size <= 3 ? 3 : size <= 7 ? 2 : size <= 15 ? 1 : 0;
  if (bits > 0) return (device - bench) * std::exp2(-exponent + bits);
  const double ours = std::log2(std::fabs(device) + tiny) * (device >= 0 ? 1 : -1);
  return ours - power * (bench >= 0 ? 1 : -1);
}

double UlpsOf(const ResultErrors& e, size_t i, const UlpLayout& layout, Width width) {
  const Width bench = e.pair().bench.width();
  const double size = std::fabs(e.Bench(i));
  double power = size == 0 ? 0 : FloorOfLogarithm(size, bench);
  if (!std::isnan(power)) power = std::max(power, layout.smallest_power);
  const double scale = RoundTo(width, PowerOfTwo(RoundTo(bench, -power + layout.bits), bench));
  const double apart = RoundTo(width, RoundTo(std::max(width, bench), RoundTo(width, e.Device(i)) - e.Bench(i)));
  return std::fabs(RoundTo(width, apart * scale));
}

void MeasureUlps(const ResultErrors& e, FigureRow* row) {
  const DType dtype = e.pair().device.dtype;
  const bool single = dtype == DType::kFloat32, eight = IsFloat8(dtype);
  const Width width = single || eight ? Width::kDouble : Width::kSingle;
  const UlpLayout layout = LayoutOf(dtype);
  std::vector<double> ulps(e.size());
  uint64_t many = 0;
  double largest = -INFINITY;
  for (size_t i = 0; i < e.size(); ++i) {
    ulps[i] = eight ? Float8Ulps(e.Bench(i), e.Device(i)) : UlpsOf(e, i, layout, width);
    many += ulps[i] > (single ? kManyUlps32 : kManyUlps16);
    largest = std::isnan(ulps[i]) || std::isnan(largest) ? NAN : std::max(largest, ulps[i]);
  }
  (*row)[Measure::kMaxUlp] = LabFigure::Of(largest, width);
  (*row)[Measure::kMeanUlp] = LabFigure::Of(NumpyMean(ulps, width), width);
  (*row)[Measure::kUlpShare] = LabFigure::Double(static_cast<double>(many) / static_cast<double>(e.size()));
}

}  // namespace

double LargestMagnitude(const std::vector<double>& values) {
  // Without their signs, the bits of numbers are ordered as these are, and NaN is above infinity.
  constexpr uint64_t kSign = uint64_t{1} << 63;
  uint64_t largest = 0;
  for (const double v : values) largest = std::max(largest, std::bit_cast<uint64_t>(v) & ~kSign);
  return std::bit_cast<double>(largest);
}

double NumpyMean(const std::vector<double>& values, Width width) {
  return MeanOf(SumOf(values.data(), values.size(), width), values.size(), width);
}

ResultErrors::ResultErrors(const ResultPair& pair)
    : pair_(pair), width_(std::max(pair.device.width(), pair.bench.width())) {
  const size_t n = pair.device.values.size();
  const Width bench = pair.bench.width(), device = pair.device.width();
  const double epsilon = EpsilonOf(pair);
  absolute_.resize(n), relative_.resize(n), rounded_.resize(n), magnitude_.resize(n), finite_.resize(n);
  const double *const ours = pair.device.values.data(), *const theirs = pair.bench.values.data();
  WithRounding(device, [&](auto round) {
    for (size_t i = 0; i < n; ++i) rounded_[i] = round(theirs[i]);
  });
  for (size_t i = 0; i < n; ++i) finite_[i] = std::isfinite(ours[i]) && std::isfinite(rounded_[i]);
  WithRounding(bench, [&](auto round) {
    for (size_t i = 0; i < n; ++i) magnitude_[i] = round(std::fabs(theirs[i]) + epsilon);
  });
  WithRounding(width_, [&](auto round) {
    for (size_t i = 0; i < n; ++i) absolute_[i] = std::fabs(round(ours[i] - theirs[i]));
    for (size_t i = 0; i < n; ++i) relative_[i] = round(absolute_[i] / magnitude_[i]);
  });
}

bool MeasureBenchmarkAtOnce(const ResultPair& pair, FigureRow* row, LargestValues* largest) {
  if (pair.device.width() != Width::kSingle) return false;
  const size_t n = pair.device.values.size();
  const Width width = pair.bench.width();
  const StandardLimits& limits = LimitsOf(pair.device.dtype);
  const PlainInput in{pair.device.values.data(),
                      pair.bench.values.data(),
                      n,
                      width,
                      RoundTo(width, limits.small_value),
                      RoundTo(width, limits.small_value_benchmark),
                      EpsilonOf(pair)};
  PlainFigures found;
  const auto relative = std::make_unique_for_overwrite<double[]>(n);
  if (!MeasurePlain(in, &found, relative.get())) return false;
  const size_t kept = n - found.small;
  (*row)[Measure::kSmallValue] = Share(found.small_bad, found.small);
  (*row)[Measure::kRmse] = RmseOf(MeanOf(found.squares, n, width), found.small, n);
  (*row)[Measure::kBalance] = BalanceOf(found.larger, found.smaller, n);
  (*row)[Measure::kMaxRelative] = kept > 0 ? LabFigure::Of(found.largest_relative, width) : LabFigure::Whole(0);
  (*row)[Measure::kMeanRelative] =
      kept > 0 ? LabFigure::Of(MeanOf(SumOf(relative.get(), kept, width), kept, width), width) : LabFigure::Whole(0);
  *largest = {found.largest_device, found.largest_bench, found.largest_absolute};
  return true;
}

void MeasureByStandard(Standard standard, const ResultErrors& e, FigureRow* row) {
  const StandardLimits& limits = LimitsOf(e.pair().device.dtype);
  switch (standard) {
    case Standard::kBenchmark: return MeasureBenchmark(e, row);
    case Standard::kUlp: return MeasureUlps(e, row);
    case Standard::kAbsolute:
      return MeasureLimits(e, limits.small_value, limits.relative, limits.small_value_absolute, row, limits.relative);
    case Standard::kAccumulative:
      MeasureLimits(e, kAccumulativeSmallValue, limits.accumulative, limits.accumulative, row, limits.accumulative);
      (*row)[Measure::kBalance] = BalanceOf(e);
      return;
    case Standard::kBinary: {
      uint64_t differ = 0;
      for (size_t i = 0; i < e.size(); ++i) differ += !(e.Bench(i) == e.Device(i));
      (*row)[Measure::kErrorRate] = LabFigure::Double(static_cast<double>(differ) / static_cast<double>(e.size()));
      return;
    }
    case Standard::kThousandth: {
      uint64_t near = 0;
      for (const double r : e.relative()) near += r < RoundTo(e.width(), kThousandthLimit);
      (*row)[Measure::kThousandth] = LabFigure::Double(static_cast<double>(near) / static_cast<double>(e.size()));
      return;
    }
  }
}

}  // namespace msprobe
