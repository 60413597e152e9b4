#include "lab/standards/measures.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>

namespace msprobe {
namespace {

constexpr double kBFloat16Max = 3.3895313892515355e38;
constexpr double kBFloat16Epsilon = 0.00390625;
constexpr double kManyUlps32 = 32, kManyUlps16 = 1;
constexpr double kThousandthLimit = 0.001;

double EpsilonOf(const ResultPair& pair) {
  if (pair.device.dtype == DType::kBFloat16) return kBFloat16Epsilon;
  switch (pair.bench.width()) {
    case Width::kHalf: return std::ldexp(1.0, -10);
    case Width::kSingle: return static_cast<double>(std::numeric_limits<float>::epsilon());
    case Width::kDouble: break;
  }
  return std::numeric_limits<double>::epsilon();
}

double LargestOf(const ResultValues& values) {
  if (values.dtype == DType::kBFloat16) return kBFloat16Max;
  switch (values.width()) {
    case Width::kHalf: return 65504;
    case Width::kSingle: return static_cast<double>(std::numeric_limits<float>::max());
    case Width::kDouble: break;
  }
  return std::numeric_limits<double>::max();
}

/// numpy's sum: eight partial sums of up to 128 values, halves of what is longer.
template <typename Round>
double PairwiseSum(const double* v, size_t n, const Round& round) {
  const auto add = [&round](double a, double b) { return round(a + b); };
  if (n < 8) {
    double sum = 0;
    for (size_t i = 0; i < n; ++i) sum = add(sum, v[i]);
    return sum;
  }
  if (n > 128) {
    size_t half = n / 2;
    half -= half % 8;
    return add(PairwiseSum(v, half, round), PairwiseSum(v + half, n - half, round));
  }
  std::array<double, 8> r;
  std::copy_n(v, 8, r.begin());
  size_t i = 8;
  for (; i + 8 <= n; i += 8) {
    for (size_t j = 0; j < 8; ++j) r[j] = add(r[j], v[i + j]);
  }
  double sum = add(add(add(r[0], r[1]), add(r[2], r[3])), add(add(r[4], r[5]), add(r[6], r[7])));
  for (; i < n; ++i) sum = add(sum, v[i]);
  return sum;
}

/// The largest magnitude; NaN if one of them is NaN, 0 without values.
double LargestOf(const double* values, size_t count) {
  constexpr size_t kLanes = 8;
  std::array<double, kLanes> largest{};
  uint64_t without = 0;
  size_t i = 0;
  for (; i + kLanes <= count; i += kLanes) {
    for (size_t lane = 0; lane < kLanes; ++lane) {
      const double size = std::fabs(values[i + lane]);
      largest[lane] = size > largest[lane] ? size : largest[lane];
      without += size != size;
    }
  }
  double out = 0;
  for (; i < count; ++i) {
    const double size = std::fabs(values[i]);
    out = size > out ? size : out;
    without += size != size;
  }
  for (const double size : largest) out = std::max(out, size);
  return without > 0 ? std::numeric_limits<double>::quiet_NaN() : out;
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

LabFigure BalanceOf(const ResultErrors& e) {
  int64_t larger = 0, smaller = 0;
  WithRounding(e.pair().device.width(), [&](auto round) {
    for (size_t i = 0; i < e.size(); ++i) {
      const double apart = round(e.Device(i) - e.BenchAsDevice(i));
      larger += apart > 0;
      smaller += apart < 0;
    }
  });
  return LabFigure::Double(static_cast<double>(std::abs(larger - smaller)) / static_cast<double>(e.size()));
}

/// What MeasureBenchmark finds in the elements.
class BenchmarkSums {
 public:
  BenchmarkSums(const ResultErrors& e, const StandardLimits& limits)
      : e_(e),
        small_value_(RoundTo(e.pair().bench.width(), limits.small_value)),
        small_error_(RoundTo(e.width(), limits.small_value_benchmark)) {
    squares_.reserve(e.size()), relative_.reserve(e.size());
    for (size_t begin = 0; begin < e.size(); begin += kBlock) {
      const size_t end = std::min(begin + kBlock, e.size());
      if (IsPlain(begin, end)) {
        AddPlain(begin, end);
      } else {
        for (size_t i = begin; i < end; ++i) Add(i);
      }
    }
  }

  void Write(FigureRow* row) {
    if (not_a_number_) largest_ = NAN;
    const double n = static_cast<double>(e_.size());
    const double mean = NumpyMean(squares_, e_.width()) * (n / (n - static_cast<double>(masked_) + 0.0001) + 0.0001);
    (*row)[Measure::kSmallValue] = Share(small_bad_, small_);
    (*row)[Measure::kRmse] = LabFigure::Double(std::sqrt(mean));
    (*row)[Measure::kBalance] = BalanceOf(e_);
    (*row)[Measure::kMaxRelative] = largest_ >= 0 ? LabFigure::Of(largest_, e_.width()) : LabFigure::Whole(0);
    (*row)[Measure::kMeanRelative] =
        relative_.empty() ? LabFigure::Whole(0) : LabFigure::Of(NumpyMean(relative_, e_.width()), e_.width());
  }

 private:
  static constexpr size_t kBlock = 256;

  /// All are finite and none is small, as nearly all are.
  bool IsPlain(size_t begin, size_t end) const {
    const double largest = std::numeric_limits<double>::max();
    uint64_t other = 0;
    for (size_t i = begin; i < end; ++i) {
      const double size = std::fabs(e_.Bench(i));
      other += !(size > small_value_) + !(std::fabs(e_.Device(i)) <= largest) +
               !(std::fabs(e_.BenchAsDevice(i)) <= largest) + !(e_.relative()[i] >= 0);
    }
    return other == 0;
  }

  void AddPlain(size_t begin, size_t end) {
    const double *const absolutes = e_.absolute().data(), *const relatives = e_.relative().data();
    relative_.insert(relative_.end(), relatives + begin, relatives + end);
    std::array<double, kBlock> squares;
    WithRounding(e_.width(), [&](auto round) {
      for (size_t i = begin; i < end; ++i) squares[i - begin] = round(absolutes[i] * absolutes[i]);
    });
    squares_.insert(squares_.end(), squares.begin(), squares.begin() + static_cast<ptrdiff_t>(end - begin));
    largest_ = std::max(largest_, LargestOf(relatives + begin, end - begin));
  }

  void Add(size_t i) {
    const bool is_small = e_.Finite(i) && std::fabs(e_.Bench(i)) <= small_value_, counts = e_.Finite(i) && !is_small;
    const double absolute = e_.absolute()[i], share = e_.relative()[i];
    small_ += is_small;
    small_bad_ += is_small && absolute > small_error_;
    masked_ += !counts;
    squares_.push_back(counts ? RoundTo(e_.width(), absolute * absolute) : 0);
    if (counts && share >= 0) relative_.push_back(share);
    largest_ = counts && share > largest_ ? share : largest_;
    not_a_number_ |= counts && std::isnan(share);
  }

  const ResultErrors& e_;
  double small_value_, small_error_;
  uint64_t small_ = 0, small_bad_ = 0, masked_ = 0;
  std::vector<double> squares_, relative_;
  double largest_ = -1;
  bool not_a_number_ = false;
};

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

UlpLayout LayoutOf(DType dtype) {
  if (dtype == DType::kFloat16) return {-14, 10};
  return dtype == DType::kBFloat16 ? UlpLayout{-126, 7} : UlpLayout{-126, 23};
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

double LargestMagnitude(const std::vector<double>& values) { return LargestOf(values.data(), values.size()); }

double NumpyMean(const std::vector<double>& values, Width width) {
  const Width inside = std::max(width, Width::kSingle);  // halves are summed up in float32
  const double sum = WithRounding(inside, [&](auto round) { return PairwiseSum(values.data(), values.size(), round); });
  return RoundTo(width, RoundTo(inside, sum / static_cast<double>(values.size())));
}

ResultErrors::ResultErrors(const ResultPair& pair)
    : pair_(pair), width_(std::max(pair.device.width(), pair.bench.width())), epsilon_(EpsilonOf(pair)) {
  const size_t n = pair.device.values.size();
  const double *const ours = pair.device.values.data(), *const theirs = pair.bench.values.data();
  const double epsilon = epsilon_;
  absolute_.reserve(n), relative_.reserve(n);
  rounded_ = pair.bench.values;
  WithRounding(pair.device.width(), [&](auto round) {
    for (double& v : rounded_) v = round(v);
  });
  // Some at a time, which stay near.
  std::array<double, 256> absolute, relative;
  for (size_t begin = 0; begin < n; begin += absolute.size()) {
    const size_t count = std::min(absolute.size(), n - begin);
    WithRounding(pair.bench.width(), [&](auto round) {
      for (size_t i = 0; i < count; ++i) relative[i] = round(std::fabs(theirs[begin + i]) + epsilon);
    });
    WithRounding(width_, [&](auto round) {
      for (size_t i = 0; i < count; ++i) absolute[i] = std::fabs(round(ours[begin + i] - theirs[begin + i]));
      for (size_t i = 0; i < count; ++i) relative[i] = round(absolute[i] / relative[i]);
    });
    absolute_.insert(absolute_.end(), absolute.begin(), absolute.begin() + count);
    relative_.insert(relative_.end(), relative.begin(), relative.begin() + count);
  }
}

void MeasureByStandard(Standard standard, const ResultErrors& e, FigureRow* row) {
  const StandardLimits& limits = LimitsOf(e.pair().device.dtype);
  switch (standard) {
    case Standard::kBenchmark: return BenchmarkSums(e, limits).Write(row);
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
