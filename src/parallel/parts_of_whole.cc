#include "parallel/parts_of_whole.h"

#include <algorithm>
#include <cmath>

namespace msprobe {
namespace {

constexpr double kTail = 8;        // some standard deviations, and of several ops in a row
constexpr double kSumDrift = 4;    // tolerances, of what has been rounded from layer to layer
constexpr double kSumRoom = 1e-3;  // of sums of rounded statistics, against the amplitude

}  // namespace

bool IsComplete(const TensorStats& s) {
  for (const StatNumber* v : {&s.max, &s.min, &s.mean, &s.norm}) {
    if (!v->given() || !std::isfinite(v->value())) return false;
  }
  return true;
}

bool NearStats(const TensorStats& a, const TensorStats& b, double tolerance) {
  const double scale = std::max(Amplitude(a), Amplitude(b));
  const auto near = [&](const StatNumber& x, const StatNumber& y, double of) {
    return !x.given() || !y.given() || x.value() == y.value() || std::fabs(x.value() - y.value()) <= tolerance * of;
  };
  return near(a.max, b.max, scale) && near(a.min, b.min, scale) && near(a.mean, b.mean, scale) &&
         near(a.norm, b.norm, std::max(std::fabs(a.norm.value()), std::fabs(b.norm.value())));
}

double SumTolerance(double tolerance) { return std::max(kSumRoom, kSumDrift * tolerance); }

bool AddUpTo(const std::vector<TensorStats>& parts, const TensorStats& whole, double tolerance) {
  double max = 0, min = 0, mean = 0, norm = 0, amplitude = 0;
  for (const TensorStats& p : parts) {
    if (!IsComplete(p)) return false;
    max += p.max.value(), min += p.min.value(), mean += p.mean.value(), norm += p.norm.value();
    amplitude = std::max(amplitude, Amplitude(p));
  }
  if (!IsComplete(whole)) return false;
  const double relative = SumTolerance(tolerance), room = relative * std::max(amplitude, Amplitude(whole));
  // The mean of many elements, each of which is rounded.
  const double rounded = whole.elements > 0 ? kTail * tolerance * amplitude / std::sqrt(whole.elements) : 0;
  return std::fabs(mean - whole.mean.value()) <= relative * std::max({std::fabs(mean), amplitude * 1e-2}) + rounded &&
         whole.max.value() <= max + room && whole.min.value() >= min - room &&
         whole.norm.value() <= norm * (1 + relative);
}

bool IsZerosAndOnes(const TensorStats& s) {
  if (!IsComplete(s) || s.elements <= 0 || s.min.value() < 0 || s.max.value() > 1) return false;
  return std::fabs(s.norm.value() * s.norm.value() - s.mean.value() * s.elements) <=
         1e-6 * s.elements;  // the sum of squares is the sum
}

}  // namespace msprobe
