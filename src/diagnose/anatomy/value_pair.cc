#include "diagnose/anatomy/value_pair.h"

#include <algorithm>
#include <cmath>

#include "tensor/kernels/finfo.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {

RoundingOf RoundingOfDType(DType dtype) {
  const double unit = InfoOf(dtype).unit();
  if (unit == 0) return {};
  if (unit <= InfoOf(DType::kFloat64).unit()) return {unit, 1e-12};
  if (unit <= InfoOf(DType::kFloat32).unit()) return {unit, 4e-6};
  // Few digits leave little room for what adds up: a single rounding is nearly all of it.
  return {unit, unit > InfoOf(DType::kBFloat16).unit() ? 1.12 * unit : 4.1 * unit};
}

std::vector<int64_t> StridesOf(const std::vector<int64_t>& shape) {
  std::vector<int64_t> out(shape.size(), 1);
  for (size_t d = shape.size(); d-- > 1;) out[d - 1] = out[d] * shape[d];
  return out;
}

std::optional<ElementsOf> ElementsOf::Open(const FileTensor& tensor, bool hold) {
  ElementsOf out;
  double probe = 0;
  Layout layout;
  if (IsComplex(tensor.dtype) || !metrics::ToDoubles(tensor.dtype, &probe, 0, &probe)) return std::nullopt;
  if (!MakeLayout(tensor.view(), Order::kLogical, &layout) || layout.count == 0) return std::nullopt;
  out.shape_ = tensor.shape;
  out.strides_ = tensor.strides;
  out.data_ = static_cast<const char*>(tensor.data);
  out.dtype_ = tensor.dtype;
  out.size_ = layout.count;
  out.in_order_ = out.strides_ == StridesOf(out.shape_);
  if (!hold || out.size_ > kMostHeld) return out;
  out.held_.resize(static_cast<size_t>(out.size_));
  double* to = out.held_.data();
  LayoutWalker(layout).Walk(0, out.size_, [&](const char* from, size_t n) {
    metrics::ToDoubles(tensor.dtype, from, n, to);
    to += n;
  });
  return out;
}

ElementsOf ElementsOf::Of(std::vector<double> values, std::vector<int64_t> shape, DType dtype) {
  ElementsOf out;
  out.size_ = static_cast<int64_t>(values.size());
  out.held_ = std::move(values);
  out.shape_ = std::move(shape);
  out.dtype_ = dtype;
  return out;
}

double ElementsOf::Read(int64_t i) const {
  int64_t offset = in_order_ ? i : 0;
  for (size_t d = in_order_ ? 0 : shape_.size(); d-- > 0;) {
    offset += i % shape_[d] * strides_[d];
    i /= shape_[d];
  }
  double out = 0;
  metrics::ToDoubles(dtype_, data_ + offset * static_cast<int64_t>(ElementSize(dtype_)), 1, &out);
  return out;
}

ValuePair::ValuePair(const ElementsOf& target, const ElementsOf& golden)
    : target_(target), golden_(golden), all_(target.size() <= ElementsOf::kMostHeld) {
  const RoundingOf a = RoundingOfDType(target.dtype()), b = RoundingOfDType(golden.dtype());
  rounding_ = a.unit >= b.unit ? a : b;
  dtype_ = a.unit >= b.unit ? target.dtype() : golden.dtype();
  if (!all_) {
    const int64_t step = size() / kRuns;
    for (int64_t run = 0; run < kRuns; ++run) {
      for (int64_t k = 0; k < kRun; ++k) places_.push_back(std::min(run * step + k, size() - 1));
    }
  }
  rms_ = UsualSize();
  for (int64_t k = 0; k < looked(); ++k) {
    if (!AgreesAt(Place(k))) differing_.push_back(Place(k));
  }
}

double ValuePair::UsualSize() const {
  // The huge numbers that stand for -inf in masks would make everything else small.
  constexpr int64_t kMost = 4096;
  constexpr double kHuge = 1e3;
  std::vector<double> sizes;
  const int64_t step = std::max<int64_t>(1, looked() / kMost);
  for (int64_t k = 0; k < looked(); k += step) {
    const double v = std::fabs(g(Place(k)));
    if (v > 0 && std::isfinite(v)) sizes.push_back(v);
  }
  if (sizes.empty()) return 0;
  const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
  std::nth_element(sizes.begin(), middle, sizes.end());
  const double most = kHuge * *middle;
  double sum = 0;
  int64_t count = 0;
  for (int64_t k = 0; k < looked(); ++k) {
    const double v = std::fabs(g(Place(k)));
    if (!(v <= most)) continue;
    sum += v * v;
    ++count;
  }
  return std::sqrt(sum / static_cast<double>(count));
}

double ValuePair::ScaleOf(double expected, double size) const {
  // A number that is so much larger that its rounding hides the rest is no reason.
  const double hiding = 1e-2 / std::max(rounding_.tolerance, 1e-300) * rms_;
  return std::max({std::fabs(expected), rms_, size <= hiding ? size : 0});
}

bool ValuePair::Agrees(double value, double expected, double size) const {
  if (value == expected || (std::isnan(value) && std::isnan(expected))) return true;
  if (!std::isfinite(value) || !std::isfinite(expected)) return false;
  return std::fabs(value - expected) <= rounding_.tolerance * ScaleOf(expected, size);
}

bool Residual::Add(double value, double expected, double size) {
  ++count_;
  if (!pair_.Agrees(value, expected, size)) return false;
  if (distinct_.size() < kTelling && std::isfinite(expected) &&
      std::find(distinct_.begin(), distinct_.end(), expected) == distinct_.end())
    distinct_.push_back(expected);
  const double unit = pair_.rounding().unit * pair_.ScaleOf(expected, size);
  if (value != expected && unit > 0 && std::isfinite(value)) {
    units_ = std::max(units_, std::fabs(value - expected) / unit);
  }
  return true;
}

}  // namespace msprobe
