#include "tensor/preview/preview.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "base/message.h"
#include "base/parallel.h"
#include "tensor/kernels/layout.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
constexpr size_t kPiece = 2048;  // elements converted at a time
constexpr int64_t kLeastPart = 1 << 17, kMostParts = 64;

/// Reads elements by their index in C order.
class ElementReader {
 public:
  Status Init(const TensorView& t) {
    double probe = 0;
    dtype_ = t.dtype;
    if (!MakeLayout(t, Order::kLogical, &layout_) || !metrics::ToDoubles(dtype_, &probe, 0, &probe)) {
      return BadInput(Msg("the tensor has a type or shape without numbers: it cannot be shown"));
    }
    if (layout_.count > kMostPreviewed)
      return BadInput(Msg("the tensor has more than 4294967296 elements: it is not shown"));
    return OkStatus();
  }
  int64_t count() const { return layout_.count; }

  void Read(int64_t begin, size_t n, double* to) const {
    LayoutWalker(layout_).Walk(begin, begin + static_cast<int64_t>(n), [&](const char* from, size_t some) {
      metrics::ToDoubles(dtype_, from, some, to);
      to += some;
    });
  }
  void Release(int64_t begin, int64_t end, const std::function<void(const void*, size_t)>& release) const {
    if (!release || !layout_.contiguous()) return;
    release(layout_.data + begin * static_cast<int64_t>(layout_.element),
            static_cast<size_t>(end - begin) * layout_.element);
  }

 private:
  Layout layout_;
  DType dtype_ = DType::kUnknown;
};

struct Range {
  double min = kInfinity, max = -kInfinity;
  int64_t nan = 0, plus_inf = 0, minus_inf = 0;

  void Add(double v) {
    if (std::isfinite(v)) {
      min = std::min(min, v);
      max = std::max(max, v);
    } else {
      ++(std::isnan(v) ? nan : v > 0 ? plus_inf : minus_inf);
    }
  }
  void Fold(const Range& other) {
    min = std::min(min, other.min);
    max = std::max(max, other.max);
    nan += other.nan;
    plus_inf += other.plus_inf;
    minus_inf += other.minus_inf;
  }
};

class Worst {
 public:
  void Add(const PreviewElement& e) {
    if (!(e.distance > 0) || (list_.size() == kPreviewWorst && !(e.distance > list_.back().distance))) return;
    const auto farther = [](const PreviewElement& a, const PreviewElement& b) { return a.distance > b.distance; };
    list_.insert(std::upper_bound(list_.begin(), list_.end(), e, farther), e);
    if (list_.size() > kPreviewWorst) list_.pop_back();
  }
  void Fold(const Worst& later) {
    for (const PreviewElement& e : later.list_) Add(e);
  }
  std::vector<PreviewElement> Take() { return std::move(list_); }

 private:
  std::vector<PreviewElement> list_;
};

/// Sums over pairs, and some of the pairs.
class Scatter {
 public:
  void Add(int64_t index, int64_t stride, double golden, double target) {
    constexpr double kMost = 1e30;  // beyond it are the limits that masks are made of
    if (!(std::fabs(golden) < kMost && std::fabs(target) < kMost)) return;
    ++count_;
    x_ += golden, y_ += target;
    xx_ += static_cast<long double>(golden) * golden;
    yy_ += static_cast<long double>(target) * target;
    xy_ += static_cast<long double>(golden) * target;
    // Another place of each stretch, so that not all points are of one column.
    const uint64_t place = static_cast<uint64_t>(index / stride) * 0x9E3779B97F4A7C15u >> 33;
    if (static_cast<uint64_t>(index % stride) == place % static_cast<uint64_t>(stride)) {
      points_.emplace_back(golden, target);
    }
  }
  void Fold(const Scatter& later) {
    count_ += later.count_;
    x_ += later.x_, y_ += later.y_, xx_ += later.xx_, yy_ += later.yy_, xy_ += later.xy_;
    points_.insert(points_.end(), later.points_.begin(), later.points_.end());
  }
  std::optional<PreviewFit> Fit() const {
    const long double n = static_cast<long double>(count_);
    if (count_ < 2) return std::nullopt;
    const long double sxx = xx_ - x_ * x_ / n, syy = yy_ - y_ * y_ / n, sxy = xy_ - x_ * y_ / n;
    // What is left of a constant side is what rounding leaves.
    constexpr long double kNothing = 1e-16L;
    if (!(sxx > kNothing * xx_) || !(syy > kNothing * yy_)) return std::nullopt;
    const long double slope = sxy / sxx;
    PreviewFit fit{count_, static_cast<double>(slope), static_cast<double>((y_ - slope * x_) / n),
                   static_cast<double>(sxy / std::sqrt(sxx * syy))};
    fit.correlation = std::clamp(fit.correlation, -1.0, 1.0);
    return fit;
  }
  std::vector<std::pair<double, double>> TakePoints() { return std::move(points_); }

 private:
  int64_t count_ = 0;
  long double x_ = 0, y_ = 0, xx_ = 0, yy_ = 0, xy_ = 0;
  std::vector<std::pair<double, double>> points_;
};

/// NaN where only one side is finite, or both are not in different ways.
double DifferenceOf(double target, double golden) {
  if (std::isfinite(target) && std::isfinite(golden)) return target - golden;
  return target == golden || (std::isnan(target) && std::isnan(golden)) ? 0 : kNan;
}

struct Bins {
  Histogram* histogram;
  double half_from, factor;

  explicit Bins(Histogram* h) : histogram(h), half_from(h->from / 2) {
    // Halves, because the width of all doubles is not a double.
    const double half_width = h->to / 2 - half_from;
    factor = half_width > 0 ? static_cast<double>(h->counts.size()) / half_width : 0;
  }
  void Add(double v, std::vector<int64_t>* counts) const {
    if (!std::isfinite(v)) return;
    const auto last = static_cast<int64_t>(counts->size()) - 1;
    const double beyond = v / 2 - half_from;
    const double at = beyond > 0 ? beyond * factor : 0;  // tiny widths have an infinite factor
    // One value alone stands in the middle.
    const int64_t bin = factor == 0 ? last / 2 : at < static_cast<double>(last) ? static_cast<int64_t>(at) : last;
    ++(*counts)[static_cast<size_t>(std::max<int64_t>(bin, 0))];
  }
};

void SetRange(double from, double to, int bins, Histogram* h) {
  const bool none = from > to;
  h->from = none ? 0 : from;
  h->to = none ? 0 : to;
  h->counts.assign(static_cast<size_t>(bins), 0);
}

bool Farther(double a, double than) {
  if (std::isnan(than)) return false;
  if (std::isnan(a) || std::fabs(a) > std::fabs(than)) return true;
  return std::fabs(a) == std::fabs(than) && a > than;
}

/// The picture's place in the tensor.
struct Slice {
  int64_t rows = 1, columns = 1, slices = 1;

  explicit Slice(const TensorView& t) {
    if (t.ndim > 0) columns = t.shape[t.ndim - 1];
    if (t.ndim > 1) rows = t.shape[t.ndim - 2];
    for (int d = 0; d < t.ndim - 2; ++d) (void)!__builtin_mul_overflow(slices, t.shape[d], &slices);
  }
  HeatMap Empty() const {
    HeatMap map;
    map.rows = rows;
    map.columns = columns;
    map.cell_rows = static_cast<int>(std::min<int64_t>(rows, kPreviewRows));
    map.cell_columns = static_cast<int>(std::min<int64_t>(columns, kPreviewColumns));
    map.cells.assign(static_cast<size_t>(map.cell_rows) * static_cast<size_t>(map.cell_columns), 0);
    return map;
  }
};

size_t CellOf(const HeatMap& map, int64_t k) {
  const int64_t row = k / map.columns * map.cell_rows / map.rows;
  const int64_t column = k % map.columns * map.cell_columns / map.columns;
  return static_cast<size_t>(row * map.cell_columns + column);
}

void Keep(HeatMap* map, size_t cell, double v) {
  if (Farther(v, map->cells[cell])) map->cells[cell] = v;
}

void Fold(const HeatMap& part, HeatMap* all) {
  for (size_t i = 0; i < part.cells.size(); ++i) Keep(all, i, part.cells[i]);
}

/// The same for any number of threads.
struct Parts {
  int64_t count, size;
  explicit Parts(int64_t n) : count(n), size(std::max(kLeastPart, (n + kMostParts - 1) / kMostParts)) {}
  size_t number() const { return static_cast<size_t>((count + size - 1) / size); }
  int64_t begin(size_t part) const { return static_cast<int64_t>(part) * size; }
  int64_t end(size_t part) const { return std::min(count, begin(part) + size); }
};

class Previewer {
 public:
  Previewer(const TensorView& target, const TensorView* golden, const PreviewOptions& options)
      : target_view_(target), golden_view_(golden), options_(options) {}

  StatusOr<TensorPreview> Run() {
    MSP_RETURN_IF_ERROR(target_.Init(target_view_));
    if (golden_view_) MSP_RETURN_IF_ERROR(golden_.Init(*golden_view_));
    paired_ = golden_view_ && SameShape();
    if (golden_view_) out_.golden.emplace();
    if (paired_) out_.difference.emplace();
    MSP_RETURN_IF_ERROR(FindRanges());
    MSP_RETURN_IF_ERROR(FillBins());
    MSP_RETURN_IF_ERROR(Paint());
    return std::move(out_);
  }

 private:
  // What is found out about a stretch; of the golden side only when it has the same shape.
  struct Found {
    Range target, golden, difference;
    int64_t equal = 0;
    Worst worst;
    Scatter scatter;
    std::vector<int64_t> target_counts, golden_counts, difference_counts;
    HeatMap target_heat, golden_heat, difference_heat;
  };

  bool SameShape() const {
    return target_view_.ndim == golden_view_->ndim &&
           std::equal(target_view_.shape, target_view_.shape + target_view_.ndim, golden_view_->shape);
  }

  /// take(index, target, golden) for elements [begin, end); without a partner `golden` is zero.
  template <typename Take>
  void ForEach(const ElementReader& one, const ElementReader* other, int64_t begin, int64_t end,
               const Take& take) const {
    double t[kPiece], g[kPiece] = {};
    for (int64_t at = begin; at < end; at += static_cast<int64_t>(kPiece)) {
      const size_t n = std::min(kPiece, static_cast<size_t>(end - at));
      one.Read(at, n, t);
      if (other) other->Read(at, n, g);
      for (size_t i = 0; i < n; ++i) take(at + static_cast<int64_t>(i), t[i], g[i]);
    }
  }

  /// work(begin, end, found) for the parts of `count` elements, then fold(found) in their order.
  template <typename Work, typename FoldIn>
  static Status InParts(int64_t count, const Work& work, const FoldIn& fold) {
    const Parts parts(count);
    std::vector<Found> found(parts.number());
    MSP_RETURN_IF_ERROR(ParallelFor(found.size(), [&](size_t i) {
      work(parts.begin(i), parts.end(i), &found[i]);
      return OkStatus();
    }));
    for (Found& f : found) fold(f);
    return OkStatus();
  }

  Status FindRanges() {
    Found all;
    MSP_RETURN_IF_ERROR(InParts(
        target_.count(), [&](int64_t begin, int64_t end, Found* f) { Look(begin, end, f); },
        [&](const Found& f) {
          all.target.Fold(f.target);
          all.golden.Fold(f.golden);
          all.difference.Fold(f.difference);
          all.equal += f.equal;
          all.worst.Fold(f.worst);
          all.scatter.Fold(f.scatter);
        }));
    if (golden_view_ && !paired_) {
      MSP_RETURN_IF_ERROR(InParts(
          golden_.count(),
          [&](int64_t begin, int64_t end, Found* f) {
            ForEach(golden_, nullptr, begin, end, [&](int64_t, double v, double) { f->golden.Add(v); });
          },
          [&](const Found& f) { all.golden.Fold(f.golden); }));
    }
    const double from = std::min(all.target.min, all.golden.min), to = std::max(all.target.max, all.golden.max);
    Describe(target_, target_view_, all.target, from, to, &out_.target);
    if (out_.golden && golden_view_) Describe(golden_, *golden_view_, all.golden, from, to, &*out_.golden);
    if (out_.difference) {
      out_.difference->equal = all.equal;
      out_.difference->not_finite = all.difference.nan;
      out_.difference->fit = all.scatter.Fit();
      out_.difference->points = all.scatter.TakePoints();
      // Differences of finite numbers may be infinite: they are beyond the last bin.
      const double most = std::max({all.difference.max, -all.difference.min, 0.0});
      SetRange(-most, most, kPreviewBins + 1, &out_.difference->histogram);
    }
    out_.worst = all.worst.Take();
    return OkStatus();
  }

  void Look(int64_t begin, int64_t end, Found* f) const {
    const int64_t stride = std::max<int64_t>(1, (target_.count() + kPreviewPoints - 1) / kPreviewPoints);
    ForEach(target_, paired_ ? &golden_ : nullptr, begin, end, [&](int64_t index, double t, double g) {
      f->target.Add(t);
      if (!paired_) {
        f->worst.Add({index, t, 0, std::isnan(t) ? kInfinity : std::fabs(t)});
        return;
      }
      f->golden.Add(g);
      f->scatter.Add(index, stride, g, t);
      const double d = DifferenceOf(t, g);
      f->difference.Add(d);
      if (d == 0) {
        ++f->equal;
      } else {
        f->worst.Add({index, t, g, std::isnan(d) ? kInfinity : std::fabs(d)});
      }
    });
  }

  static void Describe(const ElementReader& reader, const TensorView& view, const Range& range, double from, double to,
                       PreviewSide* side) {
    side->count = reader.count();
    side->nan = range.nan;
    side->plus_inf = range.plus_inf;
    side->minus_inf = range.minus_inf;
    const bool none = range.min > range.max;
    side->min = none ? kNan : range.min;
    side->max = none ? kNan : range.max;
    side->slices = std::max<int64_t>(Slice(view).slices, 1);
    SetRange(from, to, kPreviewBins, &side->histogram);
  }

  Status FillBins() {
    MSP_RETURN_IF_ERROR(FillBinsOf(target_, paired_ ? &golden_ : nullptr, &out_.target.histogram,
                                   paired_ ? &out_.golden->histogram : nullptr));
    if (!golden_view_ || paired_) return OkStatus();
    return FillBinsOf(golden_, nullptr, &out_.golden->histogram, nullptr);
  }

  Status FillBinsOf(const ElementReader& one, const ElementReader* other, Histogram* h, Histogram* others) {
    const Bins bins(h), difference(other ? &out_.difference->histogram : h);
    const auto add = [](const std::vector<int64_t>& part, Histogram* to) {
      for (size_t i = 0; i < part.size(); ++i) to->counts[i] += part[i];
    };
    return InParts(
        one.count(),
        [&](int64_t begin, int64_t end, Found* f) {
          f->target_counts.assign(h->counts.size(), 0);
          if (other) {
            f->golden_counts.assign(h->counts.size(), 0);
            f->difference_counts.assign(difference.histogram->counts.size(), 0);
          }
          ForEach(one, other, begin, end, [&](int64_t, double t, double g) {
            bins.Add(t, &f->target_counts);
            if (!other) return;
            bins.Add(g, &f->golden_counts);
            difference.Add(DifferenceOf(t, g), &f->difference_counts);
          });
          one.Release(begin, end, options_.release);
          if (other) other->Release(begin, end, options_.release);
        },
        [&](const Found& f) {
          add(f.target_counts, h);
          if (!other) return;
          add(f.golden_counts, others);
          add(f.difference_counts, difference.histogram);
        });
  }

  Status Paint() {
    MSP_RETURN_IF_ERROR(PaintOf(target_, target_view_, paired_ ? &golden_ : nullptr, &out_.target.heat));
    if (!golden_view_ || paired_) return OkStatus();
    return PaintOf(golden_, *golden_view_, nullptr, &out_.golden->heat);
  }

  Status PaintOf(const ElementReader& one, const TensorView& view, const ElementReader* other, HeatMap* map) {
    if (one.count() == 0) return OkStatus();
    const Slice slice(view);
    if (options_.slice < 0 || options_.slice >= slice.slices) {
      // Of two tensors one may have fewer slices: it has no picture then.
      if (golden_view_ && !paired_ && map != &out_.target.heat) return OkStatus();
      return BadInput(Msg("the tensor has fewer slices than that: choose one from 0"));
    }
    const HeatMap empty = slice.Empty();
    *map = empty;
    if (other) out_.golden->heat = out_.difference->heat = empty;
    const int64_t first = options_.slice * slice.rows * slice.columns;
    return InParts(
        slice.rows * slice.columns,
        [&](int64_t begin, int64_t end, Found* f) {
          f->target_heat = empty;
          if (other) f->golden_heat = f->difference_heat = empty;
          ForEach(one, other, first + begin, first + end, [&](int64_t index, double t, double g) {
            const size_t cell = CellOf(empty, index - first);
            Keep(&f->target_heat, cell, t);
            if (!other) return;
            Keep(&f->golden_heat, cell, g);
            Keep(&f->difference_heat, cell, DifferenceOf(t, g));
          });
        },
        [&](const Found& f) {
          Fold(f.target_heat, map);
          if (!other) return;
          Fold(f.golden_heat, &out_.golden->heat);
          Fold(f.difference_heat, &out_.difference->heat);
        });
  }

  const TensorView& target_view_;
  const TensorView* golden_view_;
  const PreviewOptions& options_;
  ElementReader target_, golden_;
  bool paired_ = false;
  TensorPreview out_;
};

}  // namespace

StatusOr<TensorPreview> PreviewTensors(const TensorView& target, const TensorView* golden,
                                       const PreviewOptions& options) {
  return Previewer(target, golden, options).Run();
}

}  // namespace msprobe
