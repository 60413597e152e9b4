// The terms of an update that implementations get wrong, as changes of a rule.
#pragma once

#include <array>
#include <cmath>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "optimizer/state_digits.h"
#include "optimizer/update_rule.h"
#include "optimizer/weight_values.h"

namespace msprobe {

struct FittedNumber {
  double value = 0, noise = 0;  // and how far chance may take it, relative
};

/// What the recorded numbers of a step say the hyperparameters were; none where they do not tell.
struct FittedNumbers {
  std::optional<FittedNumber> lr, beta1, beta2, weight_decay, gradient_scale, momentum, dampening;
  int held_bits = 0;  // of the fraction of the state with the fewest, where that is less than its type has; else 0
};

struct UpdateTerm {
  std::string_view id;    // "eps_inside_root"
  std::string_view text;  // "eps is added inside the root"
  /// Makes the rule the wrong one; false where the term does not apply, or is so already.
  bool (*apply)(const FittedNumbers& fitted, UpdateRule* rule);
};

/// Those without a number of their own first: of terms that explain the same, the first is the simplest.
std::span<const UpdateTerm> UpdateTerms();

/// Sums over elements of a step, from which the numbers follow by least squares.
class NumberFit {
 public:
  void Add(const UpdateRule& rule, const WeightValues& values);
  FittedNumbers Result() const;

 private:
  struct Ratio {
    double xy = 0, xx = 0, x_sum = 0;
    /// `error`: what rounding does to y. Elements count by it: weights of one value all round to one side.
    void Add(double x, double y, double error) {
      const double u = x / error, v = y / error;
      if (!std::isfinite(u) || !std::isfinite(v)) return;
      xy += u * v;
      xx += u * u;
      x_sum += std::fabs(u);
    }
    std::optional<FittedNumber> value() const;
  };
  void AddAdam(const UpdateRule& rule, const WeightValues& values);
  void AddSgd(const UpdateRule& rule, const WeightValues& values);
  void AddWeight(const UpdateRule& rule, const WeightValues& values);

  std::array<UsedDigits, kStateRoles> digits_;
  std::array<DType, kStateRoles> dtypes_{};
  Ratio lr_, beta1_, beta2_, decay_, scale_;
  double aa_ = 0, ab_ = 0, bb_ = 0, ay_ = 0, by_ = 0;  // buffer and gradient against the new buffer
};

}  // namespace msprobe
