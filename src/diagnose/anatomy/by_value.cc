#include "diagnose/anatomy/by_value.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>

#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr size_t kEntriesTold = 8;
constexpr double kFarFromOne = 16;  // a factor must be that many tolerances away from 1, an offset from 0
constexpr size_t kFew = 4;
constexpr double kInfinity = std::numeric_limits<double>::infinity();

/// A number that is not just a few bits: that two of them have a simple ratio is no chance.
bool IsLong(double v) {
  int exponent = 0;
  const double scaled = std::frexp(std::fabs(v), &exponent) * 0x1p12;
  return scaled != std::floor(scaled);
}

class ByValue {
 public:
  ByValue(const ValuePair& pair, const FactorContext& context)
      : pair_(pair), context_(context), part_(DifferingPart(pair)) {}

  Anatomy Explain() {
    if (NotFinite() || Zeroed() || Grid() || Factor() || Dropped() || Clipped() || Offset()) return out_;
    return {};
  }

 private:
  using Undo = std::function<double(double)>;

  const std::vector<int64_t>& differing() const { return pair_.differing(); }

  bool Done(AnatomyKind kind, const Residual& left) {
    out_.kind = kind;
    out_.residual = left.units();
    return true;
  }

  /// Whether element `i` stands in one of the entries of `part`.
  bool In(const AxisPart& part, int64_t i) const {
    if (part.axis < 0) return true;
    return entry_differs_[static_cast<size_t>(EntryOf(part, i))];
  }
  int64_t EntryOf(const AxisPart& part, int64_t i) const {
    int64_t inner = 1;
    for (size_t d = static_cast<size_t>(part.axis) + 1; d < pair_.shape().size(); ++d) inner *= pair_.shape()[d];
    return i / inner % part.size;
  }
  void MarkEntries() {
    if (part_.axis < 0 || !entry_differs_.empty()) return;
    entry_differs_.assign(static_cast<size_t>(part_.size), false);
    for (const int64_t i : differing()) entry_differs_[static_cast<size_t>(EntryOf(part_, i))] = true;
  }

  /// True when `undo` makes the golden values of the target's, in all of `part`, and what is outside agrees.
  bool Undoes(const AxisPart& part, const Undo& undo, Residual* left, double size = 0) {
    MarkEntries();
    for (const int64_t i : differing()) {
      if (!In(part, i) || !left->Add(undo(pair_.t(i)), pair_.g(i), size)) return false;
    }
    told_ = left->Tells();
    for (int64_t k = 0; k < pair_.looked(); ++k) {
      const int64_t i = pair_.Place(k);
      if (In(part, i) && !left->Add(undo(pair_.t(i)), pair_.g(i), size)) return false;
    }
    return true;
  }

  bool NotFinite() {
    int64_t count = 0;
    Residual left(pair_);
    for (const int64_t i : differing()) {
      if (std::isfinite(pair_.t(i)) || !std::isfinite(pair_.g(i))) return false;
      ++count;
    }
    const int64_t agreeing = pair_.looked() - count;
    if (count == 0 || agreeing < static_cast<int64_t>(kFew)) return false;
    out_.differing = count;
    out_.part = part_;
    return Done(AnatomyKind::kNotFinite, left);
  }

  bool Zeroed() {
    std::vector<double> distinct;
    bool positive = false, negative = false;
    for (const int64_t i : differing()) {
      const double g = pair_.g(i);
      if (pair_.t(i) != 0 || !std::isfinite(g)) return false;
      (g > 0 ? positive : negative) = true;
      if (distinct.size() < kFew && std::find(distinct.begin(), distinct.end(), g) == distinct.end())
        distinct.push_back(g);
    }
    if (distinct.size() < std::min<size_t>(kFew, static_cast<size_t>(pair_.size())) || pair_.size() < 2) return false;
    const Residual left(pair_);
    if (!positive || !negative) {
      // What is left has the other sign, and there is some: cut off at zero.
      int64_t other = 0, same = 0;
      for (int64_t k = 0; k < pair_.looked(); ++k) {
        const double t = pair_.t(pair_.Place(k));
        if (t != 0) ++((t > 0) == positive ? same : other);
      }
      if (same == 0 && other >= static_cast<int64_t>(kFew)) {
        out_.low = negative ? 0 : -kInfinity;
        out_.high = negative ? kInfinity : 0;
        out_.differing = static_cast<int64_t>(differing().size());
        return Done(AnatomyKind::kClipped, left);
      }
    }
    SetZeroPart();
    return Done(AnatomyKind::kZeroed, left);
  }

  /// All, whole entries of an axis, or single elements.
  void SetZeroPart() {
    MarkEntries();
    bool all = true, entries = part_.axis >= 0;
    for (int64_t k = 0; k < pair_.looked(); ++k) {
      const int64_t i = pair_.Place(k);
      const bool zero = pair_.t(i) == 0;
      all = all && zero;
      if (entries && In(part_, i)) entries = zero;
    }
    if (all) return;
    if (entries)
      out_.part = part_;
    else
      out_.differing = static_cast<int64_t>(differing().size());
  }

  /// Least squares over what differs.
  double Slope() const {
    double tg = 0, gg = 0;
    for (const int64_t i : differing()) {
      const double t = pair_.t(i), g = pair_.g(i);
      if (!std::isfinite(t) || !std::isfinite(g)) return 1;
      tg += t * g;
      gg += g * g;
    }
    return gg > 0 ? tg / gg : 1;
  }

  bool Factor() {
    if (pair_.rounding().unit == 0) return false;
    const double slope = Slope(), tolerance = pair_.rounding().tolerance;
    if (slope == 0 || !std::isfinite(slope) || std::fabs(slope - 1) < kFarFromOne * tolerance) return false;
    const bool sign = std::fabs(slope + 1) <= tolerance;
    const FactorName name = NameFactor(slope, tolerance, context_);
    const double factor = sign ? -1 : name.text.empty() ? slope : name.exact;
    for (const AxisPart& part : {AxisPart(), part_}) {
      Residual left(pair_);
      if (!Undoes(
              part, [&](double t) { return t / factor; }, &left))
        continue;
      const bool long_numbers =
          pair_.rounding().unit < 1e-6 &&
          std::all_of(differing().begin(), differing().end(), [&](int64_t i) { return IsLong(pair_.g(i)); });
      if (!told_ && !((sign || !name.text.empty()) && long_numbers)) return false;
      out_.number = factor;
      out_.name = sign ? "" : name.text;
      out_.meanings = name.meanings;
      out_.part = part;
      return Done(sign ? AnatomyKind::kSign : AnatomyKind::kFactor, left);
    }
    return false;
  }

  /// Zeros, and a factor above 1 for the rest.
  bool Dropped() {
    double tg = 0, gg = 0;
    int64_t zeros = 0;
    for (const int64_t i : differing()) {
      const double t = pair_.t(i), g = pair_.g(i);
      if (!std::isfinite(t) || !std::isfinite(g)) return false;
      zeros += t == 0;
      if (t != 0) tg += t * g, gg += g * g;
    }
    const auto count = static_cast<int64_t>(differing().size());
    if (zeros < 4 || count - zeros < 4 || gg == 0) return false;
    const double factor = tg / gg;
    if (factor < 1 + kFarFromOne * pair_.rounding().tolerance || factor > 20) return false;
    Residual left(pair_);
    for (const int64_t i : differing()) {
      if (pair_.t(i) != 0 && !left.Add(pair_.t(i) / factor, pair_.g(i))) return false;
    }
    if (!left.Tells()) return false;
    out_.number = factor;
    out_.differing = zeros;
    return Done(AnatomyKind::kDropped, left);
  }

  bool Clipped() {
    double high = -kInfinity, low = kInfinity;
    for (int64_t k = 0; k < pair_.looked(); ++k) {
      const double t = pair_.t(pair_.Place(k));
      if (!std::isfinite(t)) return false;
      high = std::max(high, t);
      low = std::min(low, t);
    }
    int64_t at_high = 0, at_low = 0;
    for (const int64_t i : differing()) {
      const double t = pair_.t(i), g = pair_.g(i);
      if (t == high && g > high) {
        ++at_high;
      } else if (t == low && g < low) {
        ++at_low;
      } else {
        return false;
      }
    }
    if (high == low) return false;  // nothing is left between the bounds
    // One element at a bound may be anything.
    if (at_high == 1 || at_low == 1 || at_high + at_low < 3) return false;
    const auto agreeing = pair_.looked() - static_cast<int64_t>(differing().size());
    if (agreeing < 4 || agreeing * 8 < pair_.looked()) return false;
    out_.high = at_high > 0 ? high : kInfinity;
    out_.low = at_low > 0 ? low : -kInfinity;
    out_.differing = at_high + at_low;
    return Done(AnatomyKind::kClipped, Residual(pair_));
  }

  bool Offset() {
    if (pair_.rounding().unit == 0 && differing().size() < 8) return false;
    for (const AxisPart& part : {AxisPart(), part_}) {
      const double offset = MeanDifference();
      if (std::fabs(offset) < kFarFromOne * pair_.rounding().tolerance * pair_.rms() || !std::isfinite(offset))
        return false;
      Residual left(pair_);
      if (!Undoes(
              part, [&](double t) { return t - offset; }, &left, std::fabs(offset)))
        continue;
      if (!told_) return false;
      out_.number = offset;
      out_.part = part;
      return Done(AnatomyKind::kOffset, left);
    }
    return false;
  }

  double MeanDifference() const {
    double sum = 0;
    for (const int64_t i : differing()) sum += pair_.t(i) - pair_.g(i);
    return sum / static_cast<double>(differing().size());
  }

  /// Has `v` no more than `bits` digits, and is it in the range of the dtype?
  static bool OnGrid(double v, int bits, double largest, double smallest) {
    if (v == 0 || !std::isfinite(v)) return true;
    int exponent = 0;
    const double scaled = std::frexp(v, &exponent) * std::ldexp(1, bits);
    return scaled == std::floor(scaled) && std::fabs(v) <= largest && v / smallest == std::floor(v / smallest);
  }

  bool Grid() {
    const bool wide = pair_.same_dtype() && (pair_.dtype() == DType::kFloat32 || pair_.dtype() == DType::kFloat64);
    if (!wide) return false;
    return OnGridOf(DType::kBFloat16) || OnGridOf(DType::kFloat16);
  }

  bool OnGridOf(DType dtype) {
    const FInfo& info = InfoOf(dtype);
    const int bits = info.digits;
    const double largest = info.largest, smallest = UlpAt(0, dtype);
    const std::string_view name = info.name;
    const RoundingOf grid = RoundingOfDType(dtype);
    int64_t off = 0;
    double worst = 0;
    std::vector<double> distinct;
    for (int64_t k = 0; k < pair_.looked(); ++k) {
      const double t = pair_.t(pair_.Place(k)), g = pair_.g(pair_.Place(k));
      if (!OnGrid(t, bits, largest, smallest)) return false;
      if (!OnGrid(g, bits, largest, smallest)) {
        ++off;
        if (distinct.size() < kFew && std::find(distinct.begin(), distinct.end(), t) == distinct.end())
          distinct.push_back(t);
      }
      if (t == g) continue;
      const double scale = std::max(std::fabs(g), pair_.rms());
      if (!(std::fabs(t - g) <= grid.tolerance * scale)) return false;
      worst = std::max(worst, std::fabs(t - g) / (grid.unit * scale));
    }
    if (off * 2 < static_cast<int64_t>(differing().size()) || distinct.size() < kFew) return false;
    out_.name = name;
    Done(AnatomyKind::kGrid, Residual(pair_));
    out_.residual = worst;
    return true;
  }

  const ValuePair& pair_;
  const FactorContext& context_;
  const AxisPart part_;
  std::vector<bool> entry_differs_;
  bool told_ = false;
  Anatomy out_;
};

}  // namespace

AxisPart DifferingPart(const ValuePair& pair) {
  AxisPart out;
  double least = 1;
  const std::vector<int64_t>& shape = pair.shape();
  int64_t inner = 1;
  for (size_t d = shape.size(); d-- > 0; inner *= shape[d]) {
    if (shape[d] < 2) continue;
    std::vector<bool> differs(static_cast<size_t>(shape[d]), false);
    for (const int64_t i : pair.differing()) differs[static_cast<size_t>(i / inner % shape[d])] = true;
    const auto count = static_cast<int64_t>(std::count(differs.begin(), differs.end(), true));
    const double share = static_cast<double>(count) / static_cast<double>(shape[d]);
    if (share > least || count == shape[d]) continue;
    least = share;
    out = {static_cast<int>(d), shape[d], count, {}};
    for (size_t k = 0; k < differs.size() && out.entries.size() < kEntriesTold; ++k) {
      if (differs[k]) out.entries.push_back(static_cast<int64_t>(k));
    }
  }
  return out;
}

Anatomy ExplainByValue(const ValuePair& pair, const FactorContext& context) { return ByValue(pair, context).Explain(); }

}  // namespace msprobe
