// Entries of one axis against those of the golden run, each by a few of its values.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "diagnose/anatomy/by_place.h"

namespace msprobe {
namespace {

constexpr int64_t kMostEntries = 4096;
constexpr int64_t kLeastProbes = 4, kMostProbes = 24, kMostProbed = 16384;  // of an entry, and of all together
constexpr size_t kEntriesTold = 8, kMostCandidates = 64;
constexpr int64_t kFewWhole = 8;  // integers are alike: an entry must hold that many of them

class Entries {
 public:
  Entries(const ValuePair& pair, size_t axis) : pair_(pair), axis_(axis), n_(pair.shape()[axis]) {
    for (size_t d = axis + 1; d < pair.shape().size(); ++d) inner_ *= pair.shape()[d];
    rest_ = pair.size() / n_;
    probes_ = std::min(rest_, std::clamp(kMostProbed / n_, kLeastProbes, kMostProbes));
  }

  Anatomy Explain() {
    if (n_ < 2 || n_ > kMostEntries || (pair_.rounding().unit == 0 && rest_ < kFewWhole)) return {};
    if (!Match()) return {};
    const PlaceMap map = [this](int64_t i) {
      const int64_t k = i / inner_ % n_;
      return PlaceOf{i + (from_[static_cast<size_t>(k)] - k) * inner_};
    };
    const std::optional<double> left = PutBack(pair_, map);
    if (!left) return {};
    Describe();
    out_.residual = *left;
    return out_;
  }

 private:
  /// The place of the p-th probe in entry `k`.
  int64_t PlaceIn(int64_t k, int64_t p) const {
    const int64_t other = (2 * p + 1) * rest_ / (2 * probes_);
    return other / inner_ * inner_ * n_ + k * inner_ + other % inner_;
  }

  template <typename Value>
  double KeyOf(int64_t k, const Value& value) const {
    double key = 0;
    for (int64_t p = 0; p < probes_; ++p) {
      const double v = value(PlaceIn(k, p));
      // Any weights will do that are not simple multiples of each other.
      if (std::isfinite(v)) key += v * (1 + std::fmod(static_cast<double>(p + 1) * 0.6180339887, 1.0));
    }
    return key;
  }

  bool Same(int64_t target, int64_t golden) const {
    for (int64_t p = 0; p < probes_; ++p) {
      if (!pair_.Agrees(pair_.t(PlaceIn(target, p)), pair_.g(PlaceIn(golden, p)))) return false;
    }
    return true;
  }

  /// Fills from_: the golden entry that each entry of the target is; itself where it agrees, else one that no other is.
  bool Match() {
    std::vector<std::pair<double, int64_t>> keys;
    for (int64_t k = 0; k < n_; ++k) keys.emplace_back(KeyOf(k, [&](int64_t i) { return pair_.g(i); }), k);
    std::sort(keys.begin(), keys.end());
    from_.assign(static_cast<size_t>(n_), -1);
    std::vector<bool> used(static_cast<size_t>(n_), false);
    std::vector<bool> differs(static_cast<size_t>(n_), false);
    for (const int64_t i : pair_.differing()) differs[static_cast<size_t>(i / inner_ % n_)] = true;
    for (size_t k = 0; k < differs.size(); ++k) {
      if (!differs[k]) from_[k] = static_cast<int64_t>(k), used[k] = true;
    }
    for (int64_t k = 0; k < n_; ++k) {
      if (!differs[static_cast<size_t>(k)]) continue;
      const int64_t found = PartnerOf(k, keys, used);
      if (found < 0) return false;
      from_[static_cast<size_t>(k)] = found;
      used[static_cast<size_t>(found)] = true;
    }
    return true;
  }

  int64_t PartnerOf(int64_t k, const std::vector<std::pair<double, int64_t>>& keys,
                    const std::vector<bool>& used) const {
    const double key = KeyOf(k, [&](int64_t i) { return pair_.t(i); });
    const double window =
        2 * static_cast<double>(probes_) * pair_.rounding().tolerance * std::max(pair_.rms(), std::fabs(key));
    auto at = std::lower_bound(keys.begin(), keys.end(), std::pair(key - window, int64_t{-1}));
    const int64_t next = k > 0 ? from_[static_cast<size_t>(k - 1)] + 1 : -1;
    int64_t fresh = -1, any = -1;
    for (size_t tried = 0; at != keys.end() && at->first <= key + window && tried < kMostCandidates; ++at, ++tried) {
      const int64_t g = at->second;
      if (g == k || !Same(k, g)) continue;
      any = any < 0 ? g : any;
      if (!used[static_cast<size_t>(g)] && (fresh < 0 || g == next)) fresh = g;
    }
    return fresh >= 0 ? fresh : any;
  }

  /// Entries that move together: the largest stretch that stays in one piece everywhere.
  int64_t Block() const {
    for (int64_t size = n_ / 2; size > 1; --size) {
      if (n_ % size != 0) continue;
      bool whole = true;
      for (int64_t k = 0; k < n_ && whole; ++k) {
        const int64_t base = from_[static_cast<size_t>(k / size * size)];
        whole = base % size == 0 && from_[static_cast<size_t>(k)] == base + k % size;
      }
      if (whole) return size;
    }
    return 1;
  }

  void Describe() {
    std::vector<int64_t> uses(static_cast<size_t>(n_), 0);
    for (const int64_t from : from_) ++uses[static_cast<size_t>(from)];
    const bool all = std::all_of(uses.begin(), uses.end(), [](int64_t u) { return u == 1; });
    out_.kind = all ? AnatomyKind::kOrder : AnatomyKind::kDuplicated;
    out_.block = Block();
    out_.part = {static_cast<int>(axis_), n_ / out_.block, 0, {}};
    for (int64_t b = 0; b < n_ / out_.block; ++b) {
      const int64_t from = from_[static_cast<size_t>(b * out_.block)] / out_.block;
      if (from == b) continue;
      ++out_.part.count;
      if (out_.part.entries.size() == kEntriesTold) continue;
      out_.part.entries.push_back(b);
      out_.sources.push_back(from);
    }
    if (all) NoteShift();
  }

  /// An order that is one turn of the axis.
  void NoteShift() {
    const int64_t shift = (n_ - from_.front()) % n_;
    for (int64_t k = 0; k < n_; ++k) {
      if (from_[static_cast<size_t>(k)] != (k - shift + n_) % n_) return;
    }
    // Two halves that change places are an order of halves.
    if (2 * shift == n_) return;
    out_.kind = AnatomyKind::kShift;
    out_.shift = 2 * shift < n_ ? shift : shift - n_;
    out_.wraps = true;
    out_.block = 0;
    out_.part = {static_cast<int>(axis_), n_, 0, {}};
    out_.sources.clear();
  }

  const ValuePair& pair_;
  const size_t axis_;
  const int64_t n_;
  int64_t inner_ = 1, rest_ = 1, probes_ = 1;
  std::vector<int64_t> from_;
  Anatomy out_;
};

/// The golden place of each place of the target, by its place along `axis`.
template <typename From>
bool IsSelection(const ElementsOf& target, const ElementsOf& golden, size_t axis, const From& from) {
  int64_t inner = 1;
  for (size_t d = axis + 1; d < target.shape().size(); ++d) inner *= target.shape()[d];
  const int64_t n = target.shape()[axis], m = golden.shape()[axis];
  const RoundingOf rounding = RoundingOfDType(target.dtype());
  const int64_t step = std::max<int64_t>(1, target.size() / ElementsOf::kMostHeld);
  std::vector<double> distinct;
  for (int64_t i = 0; i < target.size(); i += step) {
    const int64_t k = i / inner % n, outer = i / (inner * n);
    const double t = target[i], g = golden[outer * inner * m + from(k) * inner + i % inner];
    if (t != g && !(std::fabs(t - g) <= rounding.tolerance * std::fabs(g))) return false;
    if (distinct.size() < 8 && std::find(distinct.begin(), distinct.end(), g) == distinct.end()) distinct.push_back(g);
  }
  return distinct.size() >= 4;
}

}  // namespace

Anatomy ExplainByEntries(const ValuePair& pair) {
  Anatomy best;
  for (size_t axis = 0; axis < pair.shape().size(); ++axis) {
    Anatomy found = Entries(pair, axis).Explain();
    // The axis on which the least is moved says it best.
    const auto moved = [](const Anatomy& a) { return a.kind == AnatomyKind::kShift ? 1 : a.part.count; };
    if (found.found() && (!best.found() || moved(found) < moved(best))) best = std::move(found);
  }
  return best;
}

Anatomy ExplainShapes(const ElementsOf& target, const ElementsOf& golden) {
  Anatomy out;
  const std::vector<int64_t>&a = target.shape(), &b = golden.shape();
  if (a.size() != b.size() || target.dtype() != golden.dtype()) return out;
  std::vector<size_t> other;
  for (size_t d = 0; d < a.size(); ++d) {
    if (a[d] != b[d]) other.push_back(d);
  }
  if (other.size() == 2 && a[other[0]] == b[other[1]] && a[other[1]] == b[other[0]]) {
    std::vector<int64_t> strides = StridesOf(b), own = StridesOf(a);
    std::swap(strides[other[0]], strides[other[1]]);
    const int64_t step = std::max<int64_t>(1, target.size() / ElementsOf::kMostHeld);
    for (int64_t i = 0; i < target.size(); i += step) {
      int64_t at = 0;
      for (size_t d = 0; d < a.size(); ++d) at += i / own[d] % a[d] * strides[d];
      if (target[i] != golden[at]) return out;
    }
    out.kind = AnatomyKind::kAxes;
    out.axes = {static_cast<int>(other[0]), static_cast<int>(other[1])};
    return out;
  }
  if (other.size() != 1) return out;
  const size_t axis = other.front();
  const int64_t n = a[axis], m = b[axis];
  out.part = {static_cast<int>(axis), m, n, {}};
  // A whole share of an axis is a split that was meant: micro batches, ranks.
  const bool share = n < m ? m % n == 0 : n % m == 0;
  if (n < m && !share && IsSelection(target, golden, axis, [](int64_t k) { return k; })) {
    out.kind = AnatomyKind::kTruncated;
  } else if (n > m && IsSelection(target, golden, axis, [m](int64_t k) { return k % m; })) {
    out.kind = AnatomyKind::kDuplicated;
  }
  return out;
}

}  // namespace msprobe
