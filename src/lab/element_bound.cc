#include "lab/element_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "lab/check_process.h"
#include "lab/result_values.h"

namespace msprobe {
namespace {

constexpr int kBinsOfPowers = 4;

constexpr int kBias = 1023, kFraction = 52, kLowestNormal = -1022;

/// std::ilogb of what is above 0 and finite.
int PowerOf(double size) {
  const auto power = static_cast<int>(std::bit_cast<uint64_t>(size) >> kFraction);
  return power > 0 ? power - kBias : std::ilogb(size);
}

/// Of a format with `digits` bits and a smallest normal number of 2^`lowest`.
struct FloatFormat {
  int digits, lowest;
  double largest;

  static FloatFormat Of(DType t) {
    switch (t) {
      case DType::kFloat64: return {53, -1022, std::numeric_limits<double>::max()};
      case DType::kFloat16: return {11, -14, 65504};
      case DType::kBFloat16: return {8, -126, 0x1.fep127};
      default: return {24, -126, std::numeric_limits<float>::max()};
    }
  }
  /// The distance of neighbours at `size`.
  double Ulp(double size) const {
    const int power = std::max(size > 0 ? PowerOf(size) : lowest, lowest) - digits + 1;
    return power < kLowestNormal ? std::ldexp(1.0, power)
                                 : std::bit_cast<double>(static_cast<uint64_t>(power + kBias) << kFraction);
  }
};

class Elements {
 public:
  Elements(const ResultItem& item, DType dtype, ElementFigures* out)
      : item_(item), format_(FloatFormat::Of(RealTypeOf(dtype))), pairs_(IsComplex(dtype)), out_(out) {
    ours_ = FloatsOf(item.ours, dtype);
    truth_ = FloatsOf(item.truth, DType::kFloat64);
    if (!item.low.empty()) low_ = FloatsOf(item.low, DType::kFloat64);
    bounds_.resize(item.bound.size() / sizeof(float));
    if (!bounds_.empty()) std::memcpy(bounds_.data(), item.bound.data(), bounds_.size() * sizeof(float));
  }

  void Judge() {
    if (!low_.empty() && low_.size() != truth_.size()) return;
    if (ours_.size() != truth_.size() || (!bounds_.empty() && bounds_.size() != truth_.size())) return;
    out_->bounded = item_.ulps >= 0;
    for (size_t i = 0; i < truth_.size(); ++i) Add(i);
    for (size_t i = 0; i < bins_.size(); ++i) {
      if (bins_[i] != Counts{}) out_->histogram[(static_cast<int>(i) - kZeroPlace) * kBinsOfPowers] = bins_[i];
    }
    if (zeros_ != Counts{}) out_->histogram[ElementFigures::kZeroBin] = zeros_;
  }

 private:
  /// A part of a complex number is as large as the whole.
  double SizeOf(size_t i) const {
    return pairs_ ? std::hypot(truth_[i & ~size_t{1}], truth_[i | 1]) : std::abs(truth_[i]);
  }

  bool IsSpecial(size_t i) {
    const double a = ours_[i], b = truth_[i];
    if (std::isnan(a) || std::isnan(b)) {
      out_->nan += std::isnan(a) != std::isnan(b);
      return true;
    }
    // What is near the largest number may be infinite on one side.
    const double high = 0.9 * format_.largest;
    const bool beyond = std::abs(a) > high && std::abs(b) > high && std::signbit(a) == std::signbit(b);
    if (beyond || std::isinf(a) || std::isinf(b)) {
      out_->infinite += !beyond;
      return true;
    }
    const double smallest = std::ldexp(1.0, format_.lowest);
    if (b != 0 && std::abs(b) < smallest) {
      ++out_->subnormal;
      if (a == 0 && std::abs(b) > std::ldexp(smallest, -format_.digits)) {
        ++out_->flushed;
        return true;
      }
    }
    return false;
  }

  void Add(size_t i) {
    if (IsSpecial(i)) return;
    const double lacks = low_.empty() ? 0 : low_[i];
    const double size = SizeOf(i), apart = std::abs((ours_[i] - truth_[i]) - lacks), ulp = format_.Ulp(size);
    const double error = apart / ulp;
    const double eps = std::ldexp(1.0, 1 - format_.digits);
    if (apart > 0) {
      out_->rtol = std::max(out_->rtol, size > 0 ? apart / size : std::numeric_limits<double>::infinity());
      out_->atol = std::max(out_->atol, apart - eps * size);
    }
    const auto* end = std::find_if(kUlpClasses.begin(), kUlpClasses.end(), [&](double most) { return error <= most; });
    // Powers are shifted above 0, so that dividing rounds down.
    Counts& bin =
        size > 0 ? bins_[static_cast<size_t>(PowerOf(size) + kZeroPlace * kBinsOfPowers) / kBinsOfPowers] : zeros_;
    ++bin[static_cast<size_t>(end - kUlpClasses.begin())];
    if (item_.ulps < 0) return;
    const double limit = item_.ulps + (bounds_.empty() ? 0 : static_cast<double>(bounds_[i]) / ulp);
    // The one that is furthest beyond its limit; of those within it, too, so that the table shows how near it is.
    if (error * std::max(out_->limit, 1e-300) > out_->error * limit || out_->limit == 0)
      out_->error = error, out_->limit = limit;
  }

  using Counts = std::array<uint64_t, kUlpClasses.size() + 1>;
  static constexpr int kZeroPlace = 270;  // of the powers from 2^0 on

  const ResultItem& item_;
  FloatFormat format_;
  bool pairs_;
  std::vector<double> ours_, truth_, low_;
  std::vector<float> bounds_;
  std::array<Counts, kZeroPlace + 257> bins_{};  // 2^-1074 to 2^1023
  Counts zeros_{};
  ElementFigures* out_;
};

}  // namespace

ElementFigures JudgeElements(const ResultItem& item, DType dtype) {
  ElementFigures out;
  Elements(item, dtype, &out).Judge();
  return out;
}

std::string ClassesText(const ElementFigures& figures) {
  std::string out;
  const auto add = [&](const std::string& text) { out += (out.empty() ? "" : ", ") + text; };
  if (figures.nan > 0) add(fmt::format("nan {}", figures.nan));
  if (figures.infinite > 0) add(fmt::format("inf {}", figures.infinite));
  if (figures.flushed > 0) add(fmt::format("flushed {} of {} subnormal", figures.flushed, figures.subnormal));
  return out;
}

std::string HistogramText(const ElementFigures& figures) {
  std::string out;
  for (const auto& [power, counts] : figures.histogram) {
    if (!out.empty()) out += ' ';
    out += power == ElementFigures::kZeroBin ? "0" : fmt::format("2^{}", power);
    out += fmt::format(":{}", fmt::join(counts, "/"));
  }
  return out;
}

}  // namespace msprobe
