#include "curves/difference.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace msprobe {
namespace {

constexpr double kFewest =
    10;  // independent steps below which the test says nothing: their number is itself an estimate

/// The value that |t| exceeds by chance once in a thousand, for that many degrees of freedom.
double StudentLimit(double freedom) {
  constexpr std::array<std::pair<double, double>, 12> kTable{{{1, 636.6},
                                                              {2, 31.60},
                                                              {3, 12.92},
                                                              {4, 8.610},
                                                              {5, 6.869},
                                                              {6, 5.959},
                                                              {8, 5.041},
                                                              {10, 4.587},
                                                              {15, 4.073},
                                                              {30, 3.646},
                                                              {60, 3.460},
                                                              {120, 3.373}}};
  if (freedom >= kTable.back().first) return kTable.back().second;
  double limit = kTable[0].second;
  for (const auto& [f, value] : kTable) {
    if (f <= freedom) limit = value;  // the next smaller: rather too wide
  }
  return limit;
}

/// The larger of Geyer's initial positive sequence, 1 + 2 (rho_1 + rho_2 + ...), summed in pairs while they are
/// positive, and what a chain of the same first correlation has: of short series either alone is too small.
double CorrelationTime(const std::vector<double>& centred, double variance) {
  const size_t n = centred.size();
  const size_t most = std::min<size_t>(n / 2, 2000);
  double sum = 1, first = 0;
  for (size_t lag = 1; lag + 1 < most; lag += 2) {
    double pair = 0;
    for (const size_t k : {lag, lag + 1}) {
      double product = 0;
      for (size_t i = 0; i + k < n; ++i) product += centred[i] * centred[i + k];
      pair += product / (static_cast<double>(n) * variance);
      if (k == 1) first = pair;
    }
    if (pair <= 0) break;
    sum += 2 * pair;
  }
  const double chain = first < 1 ? (1 + first) / (1 - first) : static_cast<double>(n);
  return std::max({sum, chain, 1.0});
}

double MeanOf(const std::vector<double>& values, size_t begin, size_t end) {
  double sum = 0;
  for (size_t i = begin; i < end; ++i) sum += values[i];
  return end > begin ? sum / static_cast<double>(end - begin) : 0;
}

}  // namespace

double CurvePair::difference(size_t i) const {
  if (std::isfinite(a[i]) && std::isfinite(b[i])) return b[i] - a[i];
  if (std::isfinite(a[i]) != std::isfinite(b[i])) return std::numeric_limits<double>::infinity();
  return 0;
}

CurvePair PairCurves(const Curve& a, const Curve& b, int64_t shift) {
  CurvePair out;
  for (size_t i = 0, k = 0; i < a.size() && k < b.size();) {
    const int64_t step = b.steps[k] + shift;
    if (a.steps[i] < step) {
      ++i;
    } else if (a.steps[i] > step) {
      ++k;
    } else {
      out.steps.push_back(step);
      out.a.push_back(a.values[i]);
      out.b.push_back(b.values[k]);
      out.units.push_back(std::max(a.units[i], b.units[k]));
      ++i;
      ++k;
    }
  }
  return out;
}

std::string_view ZeroAxisText(ZeroAxis z) {
  switch (z) {
    case ZeroAxis::kEqual: return "equal";
    case ZeroAxis::kRoundZero: return "round zero";
    case ZeroAxis::kOneSided: return "one-sided";
    case ZeroAxis::kUndecided: return "undecided";
  }
  return "";
}

ZeroTest TestZeroAxis(const std::vector<double>& differences) {
  ZeroTest out;
  const size_t n = differences.size();
  if (std::all_of(differences.begin(), differences.end(), [](double d) { return d == 0; })) {
    out.verdict = ZeroAxis::kEqual;
    return out;
  }
  if (n < 2 || !std::all_of(differences.begin(), differences.end(), [](double d) { return std::isfinite(d); })) {
    return out;
  }
  const double mean = MeanOf(differences, 0, n);
  std::vector<double> centred(n);
  double variance = 0;
  for (size_t i = 0; i < n; ++i) {
    centred[i] = differences[i] - mean;
    variance += centred[i] * centred[i] / static_cast<double>(n);
  }
  if (variance <= mean * mean * 1e-24) {  // the same difference at each step
    out.verdict = n >= 5 ? ZeroAxis::kOneSided : ZeroAxis::kUndecided;
    out.independent = static_cast<double>(n);
    return out;
  }
  out.independent = static_cast<double>(n) / CorrelationTime(centred, variance);
  if (out.independent < kFewest) return out;
  out.limit = StudentLimit(out.independent - 1);
  out.t = mean / std::sqrt(variance / out.independent);
  out.verdict = std::fabs(out.t) > out.limit ? ZeroAxis::kOneSided : ZeroAxis::kRoundZero;
  return out;
}

CurveDifference CompareCurves(const CurvePair& pair) {
  CurveDifference out;
  out.count = pair.size();
  if (pair.size() == 0) return out;
  out.first_step = pair.steps.front();
  out.last_step = pair.steps.back();
  out.first = pair.difference(0);
  std::vector<double> differences(pair.size());
  size_t finite = 0;
  for (size_t i = 0; i < pair.size(); ++i) {
    const double d = differences[i] = pair.difference(i);
    if (!out.first_apart && std::fabs(d) > pair.units[i]) out.first_apart = pair.steps[i];
    out.bad_a += !std::isfinite(pair.a[i]);
    out.bad_b += !std::isfinite(pair.b[i]);
    if (!out.first_bad && out.bad_a + out.bad_b > 0) out.first_bad = pair.steps[i];
    if (!std::isfinite(d)) {
      if (!out.first_not_finite) out.first_not_finite = pair.steps[i];
      continue;
    }
    ++finite;
    out.positive += d > 0;
    out.negative += d < 0;
    out.mean += d;
    out.mean_abs += std::fabs(d);
    if (std::fabs(d) > out.max_abs) {
      out.max_abs = std::fabs(d);
      out.max_step = pair.steps[i];
    }
    const double relative = d == 0 ? 0 : std::fabs(d) / std::max(std::fabs(pair.a[i]), pair.units[i]);
    out.mean_relative += relative;
    out.max_relative = std::max(out.max_relative, relative);
  }
  const double count = std::max<double>(static_cast<double>(finite), 1);
  out.mean /= count;
  out.mean_abs /= count;
  out.mean_relative /= count;
  const size_t quarter = pair.size() / 4;
  if (quarter > 0) {
    out.drift = MeanOf(differences, pair.size() - quarter, pair.size()) - MeanOf(differences, 0, quarter);
  }
  out.zero = TestZeroAxis(differences);
  return out;
}

}  // namespace msprobe
