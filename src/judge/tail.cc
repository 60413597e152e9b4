#include "judge/tail.h"

#include <algorithm>
#include <cmath>

namespace msprobe {
namespace {

constexpr size_t kFewest = 64, kFewestDifferent = 4;
// A smooth series has magnitudes that hardly differ; its tail is taken to be a quarter of their size at least.
constexpr double kLeastScale = 0.25;
constexpr double kPriorWeight = 0.5, kPriorShape = 0.04;

}  // namespace

void Tail::Fit(std::span<double> magnitudes) {
  known_ = magnitudes.size() >= kFewest;
  if (!known_) return;
  std::sort(magnitudes.begin(), magnitudes.end());
  const size_t count = std::max<size_t>(magnitudes.size() / 10, 6);
  const size_t first = magnitudes.size() - count;
  quantile_ = magnitudes[first - 1];
  double sum = 0, squares = 0;
  for (size_t i = first; i < magnitudes.size(); ++i) {
    const double excess = magnitudes[i] - quantile_;
    sum += excess;
    squares += excess * excess;
  }
  const auto n = static_cast<double>(count);
  const double mean = sum / n, variance = squares / n - mean * mean;
  // Method of moments, drawn towards a light tail.
  const double moments = variance > 0 ? 0.5 * (1 - mean * mean / variance) : 0;
  shape_ = std::clamp(kPriorWeight * kPriorShape + (1 - kPriorWeight) * moments, kLightest, kHeaviest);
  scale_ = std::max({mean * (1 - shape_), kLeastScale * quantile_, 1e-12});
  share_ = n / static_cast<double>(magnitudes.size());
  // Mostly repeated values: no noise to measure by. A tail of a few different values has no shape.
  size_t different = 1;
  for (size_t i = first + 1; i < magnitudes.size(); ++i) different += magnitudes[i] > magnitudes[i - 1] ? 1 : 0;
  if (magnitudes[magnitudes.size() / 2] == 0 || different < kFewestDifferent) known_ = false;
}

double Tail::Strength(double magnitude) const {
  if (!known_ || !(magnitude > quantile_)) return 0;
  const double excess = (magnitude - quantile_) / scale_;
  return -std::log10(share_) + std::log1p(shape_ * excess) / shape_ / std::log(10.0);
}

}  // namespace msprobe
