// How far two curves are apart.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "curves/curve.h"

namespace msprobe {

/// The steps that two curves have in common.
struct CurvePair {
  std::vector<int64_t> steps;
  std::vector<double> a, b;
  std::vector<double> units;  // the larger of both sides: less cannot be told apart

  size_t size() const { return steps.size(); }
  /// b - a; NaN and infinities of both sides at once are no difference.
  double difference(size_t i) const;
};

/// `shift` is added to the steps of B.
CurvePair PairCurves(const Curve& a, const Curve& b, int64_t shift = 0);

/// Whether the difference fluctuates round zero.
enum class ZeroAxis : uint8_t {
  kEqual,      ///< there is no difference
  kRoundZero,  ///< its mean is no further from zero than chance takes it
  kOneSided,
  kUndecided,  ///< so few independent steps that nothing can be said
};
std::string_view ZeroAxisText(ZeroAxis z);

/// Successive differences resemble each other, so that n of them count for fewer independent ones.
struct ZeroTest {
  ZeroAxis verdict = ZeroAxis::kUndecided;
  double independent = 0;   // steps
  double t = 0, limit = 0;  // mean / its standard error, and what chance exceeds once in a thousand
};
ZeroTest TestZeroAxis(const std::vector<double>& differences);

struct CurveDifference {
  size_t count = 0;
  int64_t first_step = 0, last_step = 0;
  double first = 0;  // difference at the first step
  double mean = 0, mean_abs = 0, max_abs = 0;
  int64_t max_step = 0;
  double mean_relative = 0, max_relative = 0;  // |b - a| / |a|
  size_t positive = 0, negative = 0;
  double drift = 0;                         // mean of the last quarter minus that of the first
  std::optional<int64_t> first_apart;       // first step at which more than the last printed digit differs
  std::optional<int64_t> first_not_finite;  // first step at which one side alone is NaN or infinite
  std::optional<int64_t> first_bad;         // first step at which either side is
  size_t bad_a = 0, bad_b = 0;              // steps with NaN or infinity
  ZeroTest zero;
};

CurveDifference CompareCurves(const CurvePair& pair);

}  // namespace msprobe
