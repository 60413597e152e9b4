#include "judge/rank_watch.h"

#include <algorithm>
#include <cmath>

namespace msprobe {
namespace {

constexpr size_t kRankHistory = 500, kRankBase = 100;
constexpr size_t kFewestLater = 24;
constexpr double kOfNormal = 0.8;     // of what a normal distribution says: the tails of a mean are not quite its own
constexpr double kFarOut = 3;         // robust standard deviations: what is farther counts as much
constexpr double kMostOfRank = 30;    // never as certain as a relation
constexpr double kLeastOfRank = 0.2;  // on the logarithm
constexpr double kMoreCertain = 1.5, kForSplits = 1, kStandsOut = 1.3;
constexpr double kAsLikely = 1;          // difference of squares of standard errors: two thirds of all cases are within
constexpr double kOfDeviation = 1.4826;  // of a normal distribution: its standard deviation in median deviations

double MiddleValue(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

struct Spread {
  double mean = 0, variance = 0;
};

Spread SpreadOf(const double* values, size_t count) {
  Spread out;
  for (size_t i = 0; i < count; ++i) out.mean += values[i] / static_cast<double>(count);
  for (size_t i = 0; i < count; ++i) {
    out.variance += (values[i] - out.mean) * (values[i] - out.mean) / static_cast<double>(count);
  }
  return out;
}

// How many values one is worth less, as those behind each other are alike.
double Alike(const double* values, size_t count, const Spread& spread) {
  double product = 0;
  for (size_t i = 1; i < count; ++i) product += (values[i] - spread.mean) * (values[i - 1] - spread.mean);
  const double correlation = product / static_cast<double>(count - 1) / spread.variance;
  const double held = std::clamp(correlation, 0.0, 0.95);
  return (1 + held) / (1 - held);
}

struct Split {
  size_t at = 0;  // the first of what came later
  double before = 0, after = 0, strength = 0;
};

// Where the means of what came before and later are furthest apart, for how many values they are of; of those that are
// as likely the last: what is told to have begun had begun.
Split BestSplit(const std::vector<double>& values, double variance, double alike) {
  double sum = 0, whole = 0;
  for (const double v : values) whole += v;
  std::vector<Split> splits;
  double most = 0;
  for (size_t i = 1; i + kFewestLater <= values.size(); ++i) {
    sum += values[i - 1];
    if (i < kRankBase) continue;
    const auto before = static_cast<double>(i), later = static_cast<double>(values.size() - i);
    const double old = sum / before, now = (whole - sum) / later;
    const double error = std::sqrt(variance * alike * (1 / before + 1 / later));
    splits.push_back({i, old, now, std::fabs(now - old) / error});
    most = std::max(most, splits.back().strength);
  }
  Split best;
  for (const Split& one : splits) {
    if (one.strength * one.strength >= most * most - kAsLikely) best = one;
  }
  const double share = std::erfc(most / std::sqrt(2.0));
  best.strength = std::clamp(share > 0 ? -std::log10(share) * kOfNormal - kForSplits : kMostOfRank, 0.0, kMostOfRank);
  return best;
}

}  // namespace

std::optional<Change> RankWatch::Add(int64_t step, double away, double least) {
  if (values_.size() == kRankHistory) values_.erase(values_.begin()), steps_.erase(steps_.begin());
  values_.push_back(away);
  steps_.push_back(step);
  if (values_.size() < kJudgeWarmup) return std::nullopt;
  const double middle = MiddleValue(values_);
  std::vector<double> held = values_;
  for (double& v : held) v = std::fabs(v - middle);
  const double most = kFarOut * kOfDeviation * MiddleValue(held);
  for (size_t i = 0; i < held.size(); ++i) held[i] = std::clamp(values_[i], middle - most, middle + most);
  const Spread all = SpreadOf(held.data(), held.size());
  if (!(all.variance > 0)) return std::nullopt;
  Split split = BestSplit(held, all.variance, 1);
  if (split.strength < least) return std::nullopt;
  const Spread old = SpreadOf(held.data(), split.at), now = SpreadOf(&held[split.at], held.size() - split.at);
  split = BestSplit(held, std::max(old.variance, now.variance), Alike(held.data(), split.at, old));
  if (std::fabs(split.after - split.before) < kLeastOfRank) return std::nullopt;
  if (split.strength < std::max(least, kMoreCertain * told_)) return std::nullopt;
  told_ = split.strength;
  // What grows further began where it first stood out.
  size_t began = split.at;
  for (;;) {
    held.resize(began);
    const Split earlier = BestSplit(held, old.variance, 1);
    const bool same_way = (earlier.after > earlier.before) == (split.after > split.before);
    if (earlier.at == 0 || !same_way || earlier.strength < kStandsOut) break;
    began = earlier.at;
  }
  return Change{Detector::kLevel, steps_[began], split.strength, split.before, split.after};
}

}  // namespace msprobe
