// Which part of a tensor is wrong, proved by the golden statistics of the whole.
#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>

#include "compare/round_off/ruler.h"
#include "parallel/merge_fit.h"
#include "parallel/merge_suspects.h"

namespace msprobe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kExact = 2e-6;   // of statistics that were put together, against the amplitude
constexpr double kClear = 4;      // so much worse are the other explanations
constexpr double kAlike = 0.1;    // relative, of mean squares of parts of one tensor
constexpr double kFactor = 0.01;  // a factor nearer to 1 is not told from rounding of what is summed up

bool IsFinite(const TensorStats& s) {
  for (const StatNumber* v : {&s.max, &s.min, &s.mean, &s.norm}) {
    if (!v->given() || !std::isfinite(v->value())) return false;
  }
  return s.elements > 0;
}

/// The parts of one tensor against the whole, or against the parts of the golden ranks.
class Parts {
 public:
  /// `exact`: of equal tensors, which parameters are that were copied; `tolerance`: of computed ones.
  Parts(const MergedLeaf& leaf, const TensorStats& golden, double exact, double tolerance)
      : leaf_(leaf), parts_(leaf.parts), golden_(golden), exact_(exact), tolerance_(tolerance) {}

  std::vector<int> Wrong() const {
    if (parts_.size() < 2 || parts_.size() != leaf_.ranks.size() || !IsFinite(golden_)) return {};
    const std::vector<int> endless = Where([](const TensorStats& p) { return !IsFinite(p); });
    if (!endless.empty()) return SomeOf(endless);
    if (!leaf_.split) return Copies();
    const std::vector<int> scaled = Scaled();
    return scaled.empty() ? OutOfRange() : scaled;
  }

  /// Each against the part of the golden rank in its place.
  std::vector<int> UnlikeTheirPartners(const std::vector<TensorStats>& golden) const {
    if (golden.size() != parts_.size() || parts_.size() != leaf_.ranks.size()) return {};
    std::vector<int> out;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (golden[i].elements != parts_[i].elements || !IsFinite(golden[i])) return {};
      if (!IsFinite(parts_[i]) || !Near(parts_[i], golden[i])) out.push_back(leaf_.ranks[i]);
    }
    return SomeOf(out);
  }

 private:
  template <typename Test>
  std::vector<int> Where(const Test& test) const {
    std::vector<int> out;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (test(parts_[i])) out.push_back(leaf_.ranks[i]);
    }
    return out;
  }
  /// What all ranks have is the fault of none.
  std::vector<int> SomeOf(const std::vector<int>& ranks) const {
    return ranks.size() < parts_.size() ? ranks : std::vector<int>();
  }

  bool Near(const TensorStats& a, const TensorStats& b) const {
    const double room = exact_ * std::max(Amplitude(a), Amplitude(b));
    const auto near = [](const StatNumber& x, const StatNumber& y, double by) {
      return std::fabs(x.value() - y.value()) <= by;
    };
    return near(a.max, b.max, room) && near(a.min, b.min, room) && near(a.mean, b.mean, room) &&
           near(a.norm, b.norm, exact_ * std::max(a.norm.value(), b.norm.value()));
  }

  std::vector<int> Copies() const {
    return SomeOf(Where([&](const TensorStats& p) { return !Near(p, golden_); }));
  }

  /// The only part that leaves the golden range, while another has the golden extreme.
  std::vector<int> OutOfRange() const {
    const double room = std::max(kExact, tolerance_) * Amplitude(golden_);
    std::optional<size_t> outside;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const bool out =
          parts_[i].max.value() > golden_.max.value() + room || parts_[i].min.value() < golden_.min.value() - room;
      if (!out) continue;
      if (outside) return {};
      outside = i;
    }
    if (!outside) return {};
    if (OthersAreAlike(*outside)) return {leaf_.ranks[*outside]};
    for (const auto extreme : {&TensorStats::max, &TensorStats::min}) {
      const double whole = (golden_.*extreme).value();
      const auto has = [&](const TensorStats& p) {
        return std::fabs((p.*extreme).value() - whole) <= kExact * std::fabs(whole);
      };
      if (!has(parts_[*outside]) && std::ranges::any_of(parts_, has)) return {leaf_.ranks[*outside]};
    }
    return {};
  }

  /// The others are as large as the whole is on average, and the part is much further out than a factor on all
  /// explains.
  bool OthersAreAlike(size_t at) const {
    double squares = 0, own = 0, elements = 0, all = 0;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const double square = parts_[i].norm.value() * parts_[i].norm.value();
      (i == at ? own : squares) += square;
      elements += i == at ? 0 : parts_[i].elements;
      all += parts_[i].elements;
    }
    const double whole = golden_.norm.value() * golden_.norm.value();
    if (all != golden_.elements || whole == 0) return false;
    const double grown = std::fabs(std::sqrt((squares + own) / whole) - 1);
    return std::fabs(squares / elements * all / whole - 1) <= kAlike &&
           Amplitude(parts_[at]) / Amplitude(golden_) - 1 >= std::max(kAlike, 2 * grown);
  }

  /// The only part of which one factor makes what is missing to the golden statistics.
  std::vector<int> Scaled() const {
    double total = 0;
    for (const TensorStats& p : parts_) total += p.elements;
    if (total != golden_.elements) return {};
    size_t best = 0;
    double least = kInfinity, second = kInfinity;
    for (size_t i = 0; i < parts_.size(); ++i) {
      const double miss = std::min(Miss(i, 1), Miss(i, -1));
      if (miss < least) {
        second = std::exchange(least, miss);
        best = i;
      } else {
        second = std::min(second, miss);
      }
    }
    return least <= 1 && second > kClear ? std::vector<int>{leaf_.ranks[best]} : std::vector<int>();
  }

  /// How far the statistics are from the golden ones if part `at` alone was scaled; at most 1 is agreement.
  double Miss(size_t at, int sign) const {
    const TensorStats& own = parts_[at];
    double squares = 0, sum = 0, max = -kInfinity, min = kInfinity;
    for (size_t i = 0; i < parts_.size(); ++i) {
      if (i == at) continue;
      const TensorStats& p = parts_[i];
      squares += p.norm.value() * p.norm.value();
      sum += p.mean.value() * p.elements;
      max = std::max(max, p.max.value());
      min = std::min(min, p.min.value());
    }
    const double whole = golden_.norm.value() * golden_.norm.value();
    const double left = whole - squares;
    if (left <= kExact * whole || own.norm.value() == 0) return kInfinity;
    const double back = sign * std::sqrt(left) / own.norm.value();
    if (std::fabs(back - 1) <= std::max(kFactor, tolerance_)) return kInfinity;
    const double a = own.max.value() * back, b = own.min.value() * back;
    const double rms = golden_.norm.value() / std::sqrt(golden_.elements);
    const double average = (sum + own.mean.value() * back * own.elements) / golden_.elements;
    const double extreme_room = std::max(kExact, tolerance_) * Amplitude(golden_);
    const double mean_room =
        std::max(kExact, tolerance_) * (std::fabs(own.mean.value()) + rms / std::sqrt(golden_.elements)) + 1e-7 * rms;
    return std::max({std::fabs(std::max({max, a, b}) - golden_.max.value()) / extreme_room,
                     std::fabs(std::min({min, a, b}) - golden_.min.value()) / extreme_room,
                     std::fabs(average - golden_.mean.value()) / mean_room});
  }

  const MergedLeaf& leaf_;
  const std::vector<TensorStats>& parts_;
  const TensorStats& golden_;
  const double exact_, tolerance_;
};

}  // namespace

std::vector<WrongPart> FindWrongParts(const MergeNotes& target, const MergeNotes& golden, const OpDiff& op) {
  std::vector<WrongPart> out;
  const double tolerance = OpTolerance(op);
  for (size_t i = 0; i < op.rows_used; ++i) {
    const ItemView& item = op.target[i];
    if (!item.tensor || item.other_part || op.rows[i].golden == kNoItem) continue;
    if (RowDistance(op, i, CompareMode::kStatistics, tolerance) <= 1) continue;
    const MergedLeaf* leaf = target.Leaf(item.suffix);
    if (!leaf && !target.holders.empty()) out.push_back({item.suffix, target.holders});
    if (!leaf || leaf->alone) continue;
    const ItemView& partner = op.golden[static_cast<size_t>(op.rows[i].golden)];
    const MergedLeaf* other = golden.Leaf(partner.suffix);
    // Parameters are not computed: what is right is so to the last digit.
    const double room = item.state == ItemState::kParameter ? kExact : tolerance;
    TensorStats whole = StatsOf(partner);
    whole.elements = leaf->Elements();
    const Parts parts(*leaf, whole, room, tolerance);
    std::vector<int> ranks = other && !other->alone ? parts.UnlikeTheirPartners(other->parts) : parts.Wrong();
    if (ranks.empty()) ranks = target.holders;
    if (!ranks.empty()) out.push_back({item.suffix, std::move(ranks)});
  }
  return out;
}

}  // namespace msprobe
