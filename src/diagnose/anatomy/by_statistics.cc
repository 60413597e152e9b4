#include "diagnose/anatomy/by_statistics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <optional>

#include "diagnose/anatomy/value_pair.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kFarFromOne = 16;

struct Four {
  double max = 0, min = 0, mean = 0, norm = 0;
  double size() const { return std::max(std::fabs(max), std::fabs(min)); }
  bool constant() const { return max == min; }
};

std::optional<Four> FourOf(const ItemView& item) {
  std::array<double, kStatCount> v{};
  for (const Stat k : {kMax, kMin, kMean, kNorm}) {
    if (!item.stats[k].IsNumber()) return std::nullopt;
    v[k] = item.stats[k].AsDouble();
    if (!std::isfinite(v[k])) return std::nullopt;
  }
  return Four{v[kMax], v[kMin], v[kMean], v[kNorm]};
}

/// How well statistics are known: they are sums in another order, and of the dtype's own rounding.
double ToleranceOf(DType dtype) {
  if (!IsFloating(dtype)) return 0;
  if (dtype == DType::kFloat16) return 1e-3;
  return std::max(1e-5, 1.024 * InfoOf(dtype).unit());
}

/// Does `v` have more than `bits` digits?
bool HasMoreDigits(double v, int bits) {
  int exponent = 0;
  const double scaled = std::frexp(std::fabs(v), &exponent) * std::ldexp(1, bits);
  return scaled != std::floor(scaled);
}

/// Whether it is the float32 of a number of few decimal digits, as people write them.
bool IsShort(double v) {
  const double written = std::strtod(fmt::format("{:.3g}", v).c_str(), nullptr);
  return static_cast<float>(written) == static_cast<float>(v);
}

/// The nearest number of so many digits.
double Rounded(double v, int bits) {
  int exponent = 0;
  const double scaled = std::frexp(v, &exponent) * std::ldexp(1, bits);
  return std::ldexp(std::nearbyint(scaled), exponent - bits);
}

bool SameStat(const StatValue& a, const StatValue& b) {
  std::string x, y;
  a.AppendText(&x);
  b.AppendText(&y);
  return x == y;
}

class ByStatistics {
 public:
  ByStatistics(const ItemView& target, const ItemView& golden, const FactorContext& context)
      : target_(target), golden_(golden), context_(context), t_(FourOf(target)), g_(FourOf(golden)) {
    const DType a = ParseDType(target.dtype), b = ParseDType(golden.dtype);
    tolerance_ = std::max(ToleranceOf(a), ToleranceOf(b));
    exact_ = tolerance_ == 0;
    unit_ = std::max(RoundingOfDType(a).unit, RoundingOfDType(b).unit);
    single_ = a == b && a == DType::kFloat32;
    count_ = static_cast<double>(ElementCount(golden));
  }

  Anatomy Explain() {
    out_.statistics = true;
    if (!t_ || !g_ || target_.shape != golden_.shape || count_ < 4 || g_->constant()) return {};
    if (Order() || Zeroed() || Grid() || Factor() || Clipped() || Offset()) return out_;
    return {};
  }

 private:
  bool Done(AnatomyKind kind, double left) {
    out_.kind = kind;
    out_.residual = unit_ > 0 ? left / unit_ : 0;
    return true;
  }

  double Rms() const { return g_->norm / std::sqrt(count_); }

  /// The largest relative distance of `four` from the golden statistics; a mean is known as well as what it sums up.
  double DistanceOf(const Four& four) const {
    const double size = std::max(g_->size(), 1e-300);
    return std::max({std::fabs(four.max - g_->max) / size, std::fabs(four.min - g_->min) / size,
                     std::fabs(four.mean - g_->mean) / std::max(Rms(), 1e-300),
                     std::fabs(four.norm - g_->norm) / std::max(g_->norm, 1e-300)});
  }

  bool Order() {
    if (!target_.dumped_sum || !golden_.dumped_sum) return false;
    for (const Stat k : {kMax, kMin, kMean, kNorm}) {
      if (!SameStat(target_.stats[k], golden_.stats[k])) return false;
    }
    // Values that were computed may as well be rounded otherwise in single places.
    const bool computed = !exact_ && target_.state != ItemState::kParameter;
    if (computed || SameStatistics(target_, golden_)) return false;
    out_.ambiguous = true;
    return Done(AnatomyKind::kOrder, 0);
  }

  bool Zeroed() {
    if (t_->norm != 0 || t_->size() != 0 || g_->norm == 0) return false;
    return Done(AnatomyKind::kZeroed, 0);
  }

  bool Grid() {
    if (!single_ || t_->constant()) return false;
    // Extremes may lie on both grids, as those of a sine do: then nothing tells them apart.
    for (const DType type : {DType::kBFloat16, DType::kFloat16}) {
      const int bits = InfoOf(type).digits;
      const auto rounded = [bits](double t, double g) { return HasMoreDigits(g, bits) && t == Rounded(g, bits); };
      if (!rounded(t_->max, g_->max) || !rounded(t_->min, g_->min) || DistanceOf(*t_) > ToleranceOf(type)) continue;
      out_.ambiguous = !out_.name.empty();
      out_.name += (out_.ambiguous ? " or " : "") + std::string(DTypeName(type));
    }
    return !out_.name.empty() && Done(AnatomyKind::kGrid, 0);
  }

  bool Factor() {
    if (exact_ || g_->norm == 0 || t_->norm == 0) return false;
    for (const double sign : {1.0, -1.0}) {
      const double slope = sign * t_->norm / g_->norm;
      if (std::fabs(slope - 1) < kFarFromOne * tolerance_) continue;
      const bool minus = std::fabs(slope + 1) <= tolerance_;
      const FactorName name = NameFactor(slope, tolerance_, context_);
      const double factor = minus ? -1 : name.text.empty() ? slope : name.exact;
      Four undone{t_->max / factor, t_->min / factor, t_->mean / factor, t_->norm / std::fabs(factor)};
      if (factor < 0) std::swap(undone.max, undone.min);
      const double left = DistanceOf(undone);
      if (left > tolerance_) continue;
      // Statistics that are known to few digits agree by chance.
      if (!minus && name.text.empty() && tolerance_ > 1e-4) return false;
      out_.number = factor;
      out_.name = name.text;
      out_.meanings = name.meanings;
      return Done(minus ? AnatomyKind::kSign : AnatomyKind::kFactor, left);
    }
    return false;
  }

  /// What a bound takes away must fit in sums and squares.
  bool Clipped() {
    if (exact_) return false;
    const bool high = t_->max<g_->max, low = t_->min> g_->min;
    if ((!high && t_->max != g_->max) || (!low && t_->min != g_->min) || (!high && !low)) return false;
    // A bound is a number that somebody wrote: 0, or the same on both sides.
    const bool relu = low && !high && t_->min == 0 && g_->max > 0;
    const bool both = high && low && t_->max == -t_->min && (!HasMoreDigits(t_->max, 12) || IsShort(t_->max));
    if (!relu && !both) return false;
    const double squares = g_->norm * g_->norm - t_->norm * t_->norm;
    if (squares <= 0) return false;
    if (relu) {
      const double sum = count_ * (t_->mean - g_->mean);
      const double slack = 1 + 1e-3;
      if (sum <= 0 || squares > -g_->min * sum * slack || squares * slack < sum * sum / count_) return false;
    }
    out_.low = low ? t_->min : -kInfinity;
    out_.high = high ? t_->max : kInfinity;
    return Done(AnatomyKind::kClipped, 0);
  }

  double Deviation(const Four& four) const {
    return std::sqrt(std::max(0.0, four.norm * four.norm / count_ - four.mean * four.mean));
  }

  bool Offset() {
    if (tolerance_ > 1e-4) return false;
    const double tolerance = std::max(tolerance_, 1e-6);  // ids and positions are exact, their means are not
    const double offset = t_->mean - g_->mean;
    if (std::fabs(offset) < kFarFromOne * tolerance * Rms()) return false;
    const double size = std::max(t_->size(), g_->size());
    const double left = std::max(std::fabs(t_->max - offset - g_->max), std::fabs(t_->min - offset - g_->min)) / size;
    const double a = Deviation(*t_), b = Deviation(*g_);
    // The deviation is a small difference of large numbers.
    const double known = 1e-5 * std::max(t_->norm * t_->norm, g_->norm * g_->norm) / count_ / std::max(b * b, 1e-300);
    if (left > tolerance || b == 0 || known > 0.01 || std::fabs(a - b) > std::max(1e-4, known) * b) return false;
    out_.number = offset;
    return Done(AnatomyKind::kOffset, left);
  }

  const ItemView &target_, &golden_;
  const FactorContext& context_;
  const std::optional<Four> t_, g_;
  double tolerance_ = 0, unit_ = 0, count_ = 0;
  bool exact_ = false, single_ = false;
  Anatomy out_;
};

}  // namespace

int64_t ElementCount(const ItemView& item) {
  if (!item.dims || !item.dims->IsArray()) return 0;
  double count = 1;
  for (const JsonValue& n : item.dims->Items()) count *= n.IsNumber() ? n.Number() : 0;
  return count > 0 && count < 0x1p53 ? static_cast<int64_t>(count) : 0;
}

bool SameStatistics(const ItemView& a, const ItemView& b) {
  if (a.shape != b.shape || a.dtype != b.dtype) return false;
  if ((a.dumped_sum != nullptr) != (b.dumped_sum != nullptr)) return false;
  if (a.dumped_sum) {
    std::string x, y;
    AppendPyValue(&x, *a.dumped_sum);
    AppendPyValue(&y, *b.dumped_sum);
    if (x != y) return false;
  }
  for (const Stat k : {kMax, kMin, kMean, kNorm}) {
    if (!SameStat(a.stats[k], b.stats[k])) return false;
  }
  return true;
}

bool TellingStatistics(const ItemView& item) {
  const std::optional<Four> four = FourOf(item);
  return four && !four->constant() && HasMoreDigits(four->norm, 12) && ElementCount(item) >= 4;
}

namespace {

/// What rounding leaves in a sum of means.
double RoomOfMeans(const ItemView& golden, const ItemView& earlier) {
  constexpr double kOfSize = 1e-6, kOfMean = 1e-5;
  const double norms = golden.stats[kNorm].AsDouble() + earlier.stats[kNorm].AsDouble();
  const double means = std::fabs(golden.stats[kMean].AsDouble()) + std::fabs(earlier.stats[kMean].AsDouble());
  return kOfSize * norms / std::sqrt(static_cast<double>(std::max<int64_t>(ElementCount(golden), 1))) + kOfMean * means;
}

}  // namespace

bool MeanTells(const ItemView& target, const ItemView& golden, const ItemView& earlier) {
  constexpr double kTells = 30;
  for (const ItemView* item : {&target, &golden, &earlier}) {
    if (!item->stats[kMean].IsNumber() || !item->stats[kNorm].IsNumber()) return false;
  }
  return std::fabs(earlier.stats[kMean].AsDouble()) > kTells * RoomOfMeans(golden, earlier);
}

bool MeansAddUp(const ItemView& target, const ItemView& golden, const ItemView& earlier, double factor) {
  constexpr double kOfFactor = 1e-3;  // it is taken from the mean of one tensor
  if (!MeanTells(target, golden, earlier)) return false;
  const auto number = [](const ItemView& item, Stat k) { return item.stats[k].AsDouble(); };
  const double norm = number(target, kNorm), g = number(golden, kNorm), e = factor * number(earlier, kNorm);
  const bool between = norm <= (g + e) * (1 + 1e-5) && norm * (1 + 1e-5) >= std::fabs(g - e);
  const double added = factor * number(earlier, kMean);
  const double left = number(target, kMean) - number(golden, kMean) - added;
  return between && std::fabs(left) <= RoomOfMeans(golden, earlier) + (factor == 1 ? 0 : kOfFactor * std::fabs(added));
}

Anatomy ExplainByStatistics(const ItemView& target, const ItemView& golden, const FactorContext& context) {
  return ByStatistics(target, golden, context).Explain();
}

}  // namespace msprobe
