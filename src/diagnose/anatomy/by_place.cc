#include "diagnose/anatomy/by_place.h"

#include <algorithm>
#include <numeric>

namespace msprobe {
namespace {

constexpr size_t kMostAxes = 6;
constexpr size_t kMostOrdered = 4;  // axes of which all orders are tried; of more, exchanges of two
constexpr int64_t kMostHeads = 128, kMostShift = 16;
constexpr size_t kFewToTell = 4;  // of masks and indices, whose values are alike

/// The golden tensor with its axes in another order, read as if it still had its shape.
PlaceMap ReadInOrder(const std::vector<int64_t>& shape, const std::vector<int>& order) {
  const std::vector<int64_t> strides = StridesOf(shape);
  std::vector<int64_t> sizes, steps;
  for (const int axis : order) {
    sizes.push_back(shape[static_cast<size_t>(axis)]);
    steps.push_back(strides[static_cast<size_t>(axis)]);
  }
  return [sizes, steps](int64_t i) {
    PlaceOf out{0};
    for (size_t d = sizes.size(); d-- > 0;) {
      out.at += i % sizes[d] * steps[d];
      i /= sizes[d];
    }
    return out;
  };
}

std::vector<int> Counting(size_t n) {
  std::vector<int> out(n);
  std::iota(out.begin(), out.end(), 0);
  return out;
}

class ByPlace {
 public:
  explicit ByPlace(const ValuePair& pair) : pair_(pair), shape_(pair.shape()) {}

  Anatomy Explain() {
    if (shape_.empty() || shape_.size() > kMostAxes || pair_.size() < 4) return {};
    if (Axes() || Rope() || Split() || Shift()) return out_;
    return {};
  }

 private:
  bool Holds(AnatomyKind kind, const PlaceMap& map, size_t few = SIZE_MAX) {
    const std::optional<double> left = PutBack(pair_, map, few);
    if (!left) return false;
    out_.kind = kind;
    out_.residual = *left;
    return true;
  }

  bool Exchanged(const std::vector<int64_t>& shape, int a, int b) {
    if (shape[static_cast<size_t>(a)] < 2 || shape[static_cast<size_t>(b)] < 2) return false;
    std::vector<int> order = Counting(shape.size());
    std::swap(order[static_cast<size_t>(a)], order[static_cast<size_t>(b)]);
    return Holds(AnatomyKind::kAxes, ReadInOrder(shape, order), kFewToTell);
  }

  bool Axes() {
    const int n = static_cast<int>(shape_.size());
    // The last two are the most likely.
    for (int b = n - 1; b > 0; --b) {
      for (int a = b - 1; a >= 0; --a) {
        out_.axes = {a, b};
        if (Exchanged(shape_, a, b)) return true;
      }
    }
    std::vector<int> order = Counting(shape_.size());
    while (n > 2 && shape_.size() <= kMostOrdered && std::next_permutation(order.begin(), order.end())) {
      out_.axes = order;
      if (Holds(AnatomyKind::kAxes, ReadInOrder(shape_, order))) return true;
    }
    out_.axes.clear();
    return false;
  }

  /// An axis is heads and what is in a head; the heads are exchanged with another axis.
  bool Split() {
    for (size_t axis = shape_.size(); axis-- > 0;) {
      for (int64_t heads = 2; heads <= std::min(kMostHeads, shape_[axis] / 2); ++heads) {
        if (shape_[axis] % heads != 0) continue;
        std::vector<int64_t> shape = shape_;
        shape[axis] = heads;
        shape.insert(shape.begin() + static_cast<std::ptrdiff_t>(axis) + 1, shape_[axis] / heads);
        const int first = static_cast<int>(axis), second = first + 1;
        for (int other = 0; other < static_cast<int>(shape.size()); ++other) {
          if (other == first || other == second) continue;
          for (const int own : {first, second}) {
            if (!Exchanged(shape, std::min(own, other), std::max(own, other))) continue;
            out_.axes = {other < first ? other : other - 1, first};
            std::sort(out_.axes.begin(), out_.axes.end());
            out_.block = heads;
            return true;
          }
        }
      }
    }
    return false;
  }

  /// `within(k)` is the place in a head of `size` for the k-th of it, along `axis`.
  template <typename Within>
  bool InHeads(size_t axis, int64_t size, const Within& within) {
    int64_t inner = 1;
    for (size_t d = axis + 1; d < shape_.size(); ++d) inner *= shape_[d];
    const PlaceMap map = [=](int64_t i) {
      const int64_t k = i / inner % size;
      const PlaceOf other = within(k);
      return PlaceOf{i + (other.at - k) * inner, other.minus};
    };
    if (!Holds(AnatomyKind::kRope, map)) return false;
    out_.part = {static_cast<int>(axis), shape_[axis], 0, {}};
    out_.block = size;
    return true;
  }

  bool RopeIn(size_t axis, int64_t size) {
    const int64_t half = size / 2;
    const auto pairs_of_halves = [=](int64_t k) { return PlaceOf{k / 2 + (k % 2) * half}; };
    const auto halves_of_pairs = [=](int64_t k) { return PlaceOf{k < half ? 2 * k : 2 * (k - half) + 1}; };
    // (-second, first) of halves or of pairs: what is multiplied by the sine.
    const auto turned_pairs = [=](int64_t k) {
      const int64_t from = k % 2 == 0 ? k + 1 : k - 1;
      const bool low = from < half;  // the golden run has it in the second half, or negative in the first
      return PlaceOf{low ? from + half : from - half, (k % 2 == 0) == low};
    };
    const auto turned_halves = [=](int64_t k) {
      const int64_t from = k < half ? k + half : k - half;
      const bool even = from % 2 == 0;
      return PlaceOf{even ? from + 1 : from - 1, (k < half) == even};
    };
    return InHeads(axis, size, pairs_of_halves) || InHeads(axis, size, halves_of_pairs) ||
           InHeads(axis, size, turned_pairs) || InHeads(axis, size, turned_halves);
  }

  bool Rope() {
    // Of activations the last axis, of weights the first.
    for (const size_t axis : {shape_.size() - 1, size_t{0}}) {
      for (int64_t heads = 1; heads <= std::min(kMostHeads, shape_[axis] / 4); ++heads) {
        const int64_t size = shape_[axis] / heads;
        if (size * heads == shape_[axis] && size % 2 == 0 && RopeIn(axis, size)) return true;
      }
    }
    return false;
  }

  bool Shift() {
    int64_t inner = 1;
    for (size_t axis = shape_.size(); axis-- > 0; inner *= shape_[axis]) {
      const int64_t n = shape_[axis];
      for (int64_t size = 1; size <= std::min(kMostShift, n - 1); ++size) {
        for (const int64_t shift : {size, -size}) {
          if (Shifted(axis, inner, n, shift)) return true;
        }
      }
    }
    return false;
  }

  bool Shifted(size_t axis, int64_t inner, int64_t n, int64_t shift) {
    const auto map_of = [=](bool wraps) -> PlaceMap {
      return [=](int64_t i) {
        const int64_t k = i / inner % n;
        int64_t from = k - shift;
        if (wraps) from = (from + n) % n;
        return from < 0 || from >= n ? PlaceOf{} : PlaceOf{i + (from - k) * inner};
      };
    };
    // More than half of the axis must be seen to move; two halves that change places are an order.
    if (2 * std::abs(shift) >= n || !Holds(AnatomyKind::kShift, map_of(false), kFewToTell)) return false;
    out_.part = {static_cast<int>(axis), n, 0, {}};
    out_.shift = shift;
    if (const std::optional<double> left = PutBack(pair_, map_of(true), kFewToTell)) {
      out_.wraps = true;
      out_.residual = *left;
    }
    return true;
  }

  const ValuePair& pair_;
  const std::vector<int64_t>& shape_;
  Anatomy out_;
};

}  // namespace

std::optional<double> PutBack(const ValuePair& pair, const PlaceMap& map, size_t few) {
  Residual left(pair);
  const auto agrees = [&](int64_t i, const PlaceOf& from) {
    return left.Add(from.minus ? -pair.t(i) : pair.t(i), pair.g(from.at));
  };
  size_t said = 0;
  for (const int64_t i : pair.differing()) {
    const PlaceOf from = map(i);
    if (from.at < 0) continue;
    if (!agrees(i, from)) return std::nullopt;
    ++said;
  }
  if (2 * said < pair.differing().size() || !(left.Tells() || said >= few)) return std::nullopt;
  for (int64_t k = 0; k < pair.looked(); ++k) {
    const int64_t i = pair.Place(k);
    const PlaceOf from = map(i);
    if (from.at >= 0 && !agrees(i, from)) return std::nullopt;
  }
  return left.units();
}

Anatomy ExplainByPlace(const ValuePair& pair) { return ByPlace(pair).Explain(); }

}  // namespace msprobe
