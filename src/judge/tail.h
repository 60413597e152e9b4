// How unlikely a value is, judged by the values of the same kind before it.
#pragma once

#include <span>

namespace msprobe {

/// The upper tail of magnitudes beyond their 90 % quantile, as a generalized Pareto distribution. The shape is never
/// taken to be lighter than kLightest: a few hundred values do not show how far a tail reaches.
class Tail {
 public:
  static constexpr double kLightest = 0.02, kHeaviest = 0.5;

  /// Of magnitudes (>= 0), in any order; they are sorted. At least 64 are needed for a tail that says something.
  void Fit(std::span<double> magnitudes);
  bool known() const { return known_; }

  /// -log10 of the probability of a magnitude of this size or more; 0 within the bulk and before Fit().
  double Strength(double magnitude) const;

 private:
  double quantile_ = 0, scale_ = 0, shape_ = kLightest, share_ = 0.1;
  bool known_ = false;
};

}  // namespace msprobe
