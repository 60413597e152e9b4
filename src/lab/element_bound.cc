#include "lab/element_bound.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "lab/check_process.h"
#include "lab/element_block.h"
#include "lab/result_values.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr int kBinsOfPowers = 4;

constexpr int kBias = 1023, kFraction = 52;

/// std::ilogb of what is above 0 and finite.
int PowerOf(double size) {
  const auto power = static_cast<int>(std::bit_cast<uint64_t>(size) >> kFraction);
  return power > 0 ? power - kBias : std::ilogb(size);
}

/// x / 2^power. Multiplying by the inverse is as exact, but float64 has none of its smallest ones.
double OverPower(double x, int power) {
  return power < -kBias + 1 ? x / std::ldexp(1.0, power)
                            : x * std::bit_cast<double>(static_cast<uint64_t>(kBias - power) << kFraction);
}

class Elements {
 public:
  Elements(const ResultItem& item, DType dtype, ElementFigures* out)
      : item_(item),
        format_(InfoOf(dtype)),
        high_(0.9 * format_.largest),
        smallest_(format_.smallest_normal()),
        pairs_(IsComplex(dtype)),
        out_(out) {
    blocks_ = !pairs_ && item.low.empty() && RealTypeOf(dtype) != DType::kFloat64;
    ours_ = NumbersAt(item.ours, dtype);
    truth_ = NumbersAt(item.truth, DType::kFloat64);
    if (!item.low.empty()) low_ = NumbersAt(item.low, DType::kFloat64);
    bounds_.resize(item.bound.size() / sizeof(float));
    if (!bounds_.empty()) std::memcpy(bounds_.data(), item.bound.data(), bounds_.size() * sizeof(float));
  }

  void Judge() {
    if (!low_.empty() && low_.size() != truth_.size()) return;
    if (ours_.size() != truth_.size() || (!bounds_.empty() && bounds_.size() != truth_.size())) return;
    out_->bounded = item_.ulps >= 0;
    ElementExtremes found;
    size_t done = 0;
    for (; blocks_ && done + ElementBlock::kSize <= truth_.size(); done += ElementBlock::kSize) AddBlock(done, &found);
    for (size_t i = done; i < truth_.size(); ++i) Add(i, &found);
    out_->rtol = found.rtol, out_->atol = found.atol, out_->error = found.error, out_->limit = found.limit;
    for (size_t i = 0; i < bins_.size(); ++i) {
      if (bins_[i] == Counts{}) continue;
      const int power = (static_cast<int>(i) - kZeroPlace) * kBinsOfPowers;
      std::copy_n(bins_[i].begin(), kUlpClasses.size() + 1,
                  out_->histogram[i == ElementBlock::kZeroBin ? ElementFigures::kZeroBin : power].begin());
    }
  }

 private:
  /// A part of a complex number is as large as the whole.
  double SizeOf(size_t i) const {
    return pairs_ ? std::hypot(truth_[i & ~size_t{1}], truth_[i | 1]) : std::abs(truth_[i]);
  }

  /// Neither NaN nor near infinity nor subnormal, as nearly all are.
  bool IsPlain(double a, double b) const {
    const double size = std::abs(b);
    return std::abs(a) <= high_ && size <= high_ && (size >= smallest_ || b == 0);
  }

  bool IsSpecial(double a, double b) {
    if (std::isnan(a) || std::isnan(b)) {
      out_->nan += std::isnan(a) != std::isnan(b);
      return true;
    }
    // What is near the largest number may be infinite on one side.
    const bool beyond = std::abs(a) > high_ && std::abs(b) > high_ && std::signbit(a) == std::signbit(b);
    if (beyond || std::isinf(a) || std::isinf(b)) {
      out_->infinite += !beyond;
      return true;
    }
    if (b != 0 && std::abs(b) < smallest_) {
      ++out_->subnormal;
      if (a == 0 && std::abs(b) > std::ldexp(smallest_, -format_.digits)) {
        ++out_->flushed;
        return true;
      }
    }
    return false;
  }

  static size_t ClassOf(double error) {
    size_t out = 0;
    for (const double most : kUlpClasses) out += !(error <= most);
    return out;
  }

  void AddBlock(size_t begin, ElementExtremes* found) {
    ElementBlock block;
    const ElementRuler ruler{format_.digits, smallest_, high_, format_.eps(), item_.ulps};
    if (!MeasureBlock(ruler, ours_.data() + begin, truth_.data() + begin,
                      bounds_.empty() ? nullptr : bounds_.data() + begin, found, &block)) {
      for (size_t i = 0; i < ElementBlock::kSize; ++i) Add(begin + i, found);
      return;
    }
    for (const uint64_t place : block.places) ++bins_.front().data()[place];
    for (size_t i = 0; block.further && item_.ulps >= 0 && i < ElementBlock::kSize; ++i)
      found->TakeError(block.errors[i], block.limits[i]);
  }

  void Add(size_t i, ElementExtremes* found) {
    const double ours = ours_[i], truth = truth_[i];
    if (!IsPlain(ours, truth) && IsSpecial(ours, truth)) return;
    const double lacks = low_.empty() ? 0 : low_[i];
    const double size = SizeOf(i), apart = std::abs((ours - truth) - lacks);
    const int power = size > 0 ? PowerOf(size) : format_.least_power,
              ulp = std::max(power, format_.least_power) - format_.fraction_bits();
    const double error = OverPower(apart, ulp);
    if (apart > 0) {
      if (size == 0) {
        found->rtol = std::numeric_limits<double>::infinity();
      } else if (apart > found->rtol * size * kJustBelow || size < smallest_) {  // else the quotient is not larger
        found->rtol = std::max(found->rtol, apart / size);
      }
      found->atol = std::max(found->atol, apart - format_.eps() * size);
    }
    // Powers are shifted above 0, so that dividing rounds down.
    ++bins_[size > 0 ? static_cast<size_t>(power + kZeroPlace * kBinsOfPowers) / kBinsOfPowers : ElementBlock::kZeroBin]
           [ClassOf(error)];
    if (item_.ulps < 0) return;
    const double limit = item_.ulps + (bounds_.empty() ? 0 : OverPower(static_cast<double>(bounds_[i]), ulp));
    found->TakeError(error, limit);
  }

  using Counts = std::array<uint64_t, ElementBlock::kClasses>;
  static constexpr int kZeroPlace = 270;  // of the powers from 2^0 on
  static constexpr double kJustBelow = 1 - 0x1p-50;

  const ResultItem& item_;
  FInfo format_;
  double high_, smallest_;
  bool pairs_, blocks_;
  ResultNumbers ours_, truth_, low_;
  std::vector<float> bounds_;
  std::array<Counts, ElementBlock::kZeroBin + 1> bins_{};  // 2^-1074 to 2^1023, and of zeros
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
