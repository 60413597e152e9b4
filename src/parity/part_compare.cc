#include "parity/part_compare.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
// A layout adds up in another order at each op; one more rounding at each module is a sample of that, of which the
// parts of a tensor see some more or less.
constexpr double kRoundings = 16;
constexpr double kUnits = 8;

/// Only what this rank keeps.
void Keep(const ParityEntry& entry, std::vector<double>* values) {
  if (!entry.valid) return;
  values->erase(values->begin() + entry.valid->second, values->end());
  values->erase(values->begin(), values->begin() + entry.valid->first);
}

/// Each part plus those of the ranks that differ from it in the summed axes only.
std::vector<std::vector<double>> Added(const RankParts& parts, const RankMapping& mapping,
                                       const std::optional<std::vector<double>>& scales) {
  const auto coordinates = CoordinatesOf(parts.ranks);
  const std::vector<std::string> sums = mapping.Sums();
  std::map<std::vector<int>, std::vector<double>> totals;
  const auto key = [&](size_t i) {
    std::vector<int> out;
    for (const auto& [axis, own] : coordinates) {
      if (std::find(sums.begin(), sums.end(), axis) == sums.end()) out.push_back(own[i]);
    }
    return out;
  };
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<double>& total = totals[key(i)];
    if (total.empty()) total.resize(parts.values[i].size());
    if (total.size() != parts.values[i].size()) continue;
    const double scale = scales ? (*scales)[i] : 1;
    for (size_t e = 0; e < total.size(); ++e) total[e] += parts.values[i][e] / scale;
  }
  std::vector<std::vector<double>> out;
  for (size_t i = 0; i < parts.size(); ++i) out.push_back(totals[key(i)]);
  return out;
}

struct Trial {
  PartsComparison found;
  size_t fitting = 0;
  double total = 0;  // of the errors
  /// Of mappings that nothing speaks for but their sizes the one that is nearest.
  bool better_than(const Trial& o) const {
    const int cost = found.mapping.cost(), other = o.found.mapping.cost();
    return fitting != o.fitting ? fitting > o.fitting : cost != other ? cost < other : total < o.total;
  }
};

Trial Try(const RankParts& parts, const WholeValues& whole, const RankMapping& mapping,
          const std::optional<std::vector<double>>& scales) {
  Trial trial;
  PartsComparison& found = trial.found;
  found.mapping = mapping;
  const std::vector<std::vector<double>> values = mapping.IsSum() ? Added(parts, mapping, scales) : parts.values;
  bool bits = !mapping.IsSum();
  for (size_t i = 0; i < parts.size(); ++i) {
    std::vector<double> expected = Taken(whole.values, whole.shape, mapping.places[i]);
    std::vector<double> rounded =
        whole.rounded.empty() ? expected : Taken(whole.rounded, whole.shape, mapping.places[i]);
    std::vector<double> own = values[i];
    Keep(*parts.entries[i], &expected), Keep(*parts.entries[i], &rounded), Keep(*parts.entries[i], &own);
    const double bound =
        std::max(BoundOf(expected, rounded, whole.dtype), BoundOf(expected, rounded, parts.entries[i]->dtype));
    double scale = scales ? (*scales)[i] : 1;
    if (!scales) {
      const double squares = Dot(expected, expected);
      scale = squares > 0 ? Dot(own, expected) / squares : 1;
      if (!(std::abs(scale) > 0) || !std::isfinite(scale)) scale = 1;
    }
    if (scale != 1 && !(scales && mapping.IsSum())) {  // summands are scaled before they are added up
      for (double& value : own) value /= scale;
    }
    bits = bits && own == expected;
    const double error = RelativeError(own, expected);
    found.errors.push_back(error), found.bounds.push_back(bound), found.scales.push_back(scale);
    found.expected.push_back(std::move(expected));
    trial.fitting += error <= bound;
    trial.total += std::min(error, 1e6);
  }
  found.kind = trial.fitting < parts.size() ? PartsKind::kDiffers
               : mapping.IsSum()            ? PartsKind::kSum
               : bits                       ? PartsKind::kBitEqual
                                            : PartsKind::kEqual;
  return trial;
}

}  // namespace

WholeValues WholeOf(const ParityEntry& reference, const ParityEntry* rounded) {
  WholeValues out{reference.shape, reference.dtype, ElementsOf(reference), {}};
  if (rounded != nullptr && rounded->shape == reference.shape) out.rounded = ElementsOf(*rounded);
  return out;
}

std::optional<size_t> PartsComparison::farthest() const {
  const std::vector<size_t> beyond = bad();
  std::optional<size_t> out;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!beyond.empty() && std::find(beyond.begin(), beyond.end(), i) == beyond.end()) continue;
    if (!out || errors[i] > errors[*out]) out = i;
  }
  return out;
}

double PartsComparison::worst() const { return farthest() ? errors[*farthest()] : 0; }

double PartsComparison::bound() const { return farthest() ? bounds[*farthest()] : 0; }

std::vector<size_t> PartsComparison::bad() const {
  std::vector<size_t> out;
  for (size_t i = 0; i < errors.size(); ++i) {
    if (!(errors[i] <= bounds[i])) out.push_back(i);
  }
  return out;
}

double Dot(const std::vector<double>& a, const std::vector<double>& b) {
  double sum = 0;
  for (size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

double SumOfSquares(const std::vector<double>& values) { return Dot(values, values); }

double RelativeError(const std::vector<double>& target, const std::vector<double>& golden) {
  if (target.size() != golden.size()) return kInfinity;
  double difference = 0, squares = 0;
  for (size_t i = 0; i < target.size(); ++i) {
    if (std::isnan(target[i]) && std::isnan(golden[i])) continue;
    if (target[i] == golden[i] && std::isinf(target[i])) continue;  // a mask
    difference += (target[i] - golden[i]) * (target[i] - golden[i]);
    if (std::isfinite(golden[i])) squares += golden[i] * golden[i];
  }
  if (difference == 0) return 0;
  if (std::isnan(difference) || squares == 0) return kInfinity;
  return std::sqrt(difference / squares);
}

std::optional<double> FactorBetween(const std::vector<double>& target, const std::vector<double>& golden,
                                    double bound) {
  const double squares = target.size() == golden.size() ? Dot(golden, golden) : 0;
  if (!(squares > 0)) return std::nullopt;
  const double factor = Dot(target, golden) / squares;
  if (!std::isfinite(factor) || factor == 0) return std::nullopt;
  std::vector<double> back = target;
  for (double& value : back) value /= factor;
  return RelativeError(back, golden) <= bound ? std::optional(factor) : std::nullopt;
}

double BoundOf(const std::vector<double>& golden, const std::vector<double>& rounded, DType dtype) {
  const double moved = RelativeError(rounded, golden);
  const double unit = InfoOf(dtype).eps();
  return std::max(kUnits * unit, std::isfinite(moved) ? kRoundings * moved : kInfinity);
}

PartsComparison ComparePartsWith(const RankParts& parts, const WholeValues& whole,
                                 const std::optional<std::vector<double>>& scales) {
  std::optional<Trial> best;
  for (const RankMapping& mapping : MappingsOf(parts, whole.shape)) {
    Trial trial = Try(parts, whole, mapping, scales);
    if (trial.found.kind != PartsKind::kDiffers) return std::move(trial.found);
    if (mapping.IsSum()) continue;  // what is no sum is no sum that is wrong
    if (!best || trial.better_than(*best)) best = std::move(trial);
  }
  if (best) return std::move(best->found);
  return {};
}

PartsComparison CompareParts(const RankParts& parts, const WholeValues& whole) {
  return ComparePartsWith(parts, whole, std::vector<double>(parts.size(), 1.0));
}

}  // namespace msprobe
