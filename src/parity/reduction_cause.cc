// How a gradient was put together from what the ranks had: as a sum of those with weights, which are solved for.
#include <algorithm>
#include <cmath>
#include <set>

#include "parity/cause.h"
#include "parity/parts.h"

namespace msprobe {
namespace {

constexpr double kAlike = 1e-6, kExplained = 1e-3, kNothing = 2e-3;

/// Gradients before the reduction; equal ones of several ranks are one.
struct Basis {
  std::vector<std::vector<int>> ranks;
  std::vector<const std::vector<double>*> values;
};

Basis BasisOf(const RankParts& before, size_t elements) {
  Basis basis;
  for (size_t i = 0; i < before.size(); ++i) {
    if (before.values[i].size() != elements || SumOfSquares(before.values[i]) == 0) continue;
    bool known = false;
    for (size_t b = 0; b < basis.values.size() && !known; ++b) {
      known = RelativeError(before.values[i], *basis.values[b]) <= kAlike;
      if (known) basis.ranks[b].push_back(before.ranks[i]->rank);
    }
    if (known) continue;
    basis.ranks.push_back({before.ranks[i]->rank});
    basis.values.push_back(&before.values[i]);
  }
  return basis;
}

/// Solves a symmetric system; empty where it has no single answer.
std::vector<double> Solved(std::vector<std::vector<double>> a, std::vector<double> b) {
  const size_t n = b.size();
  for (size_t k = 0; k < n; ++k) {
    size_t pivot = k;
    for (size_t i = k + 1; i < n; ++i) {
      if (std::abs(a[i][k]) > std::abs(a[pivot][k])) pivot = i;
    }
    if (std::abs(a[pivot][k]) < 1e-9 * std::abs(a[0][0])) return {};
    std::swap(a[k], a[pivot]), std::swap(b[k], b[pivot]);
    for (size_t i = k + 1; i < n; ++i) {
      const double factor = a[i][k] / a[k][k];
      for (size_t j = k; j < n; ++j) a[i][j] -= factor * a[k][j];
      b[i] -= factor * b[k];
    }
  }
  for (size_t k = n; k-- > 0;) {
    for (size_t j = k + 1; j < n; ++j) b[k] -= a[k][j] * b[j];
    b[k] /= a[k][k];
  }
  return b;
}

/// The weights with which `target` is the sum of the basis; empty where it is none.
std::vector<double> WeightsOf(const std::vector<double>& target, const Basis& basis) {
  const size_t n = basis.values.size();
  if (n == 0 || target.size() <= n || SumOfSquares(target) == 0) return {};
  std::vector<std::vector<double>> gram(n, std::vector<double>(n));
  std::vector<double> right(n);
  for (size_t i = 0; i < n; ++i) {
    right[i] = Dot(*basis.values[i], target);
    for (size_t j = 0; j < n; ++j) gram[i][j] = Dot(*basis.values[i], *basis.values[j]);
  }
  const std::vector<double> weights = Solved(gram, right);
  if (weights.empty()) return {};
  std::vector<double> sum(target.size());
  for (size_t i = 0; i < n; ++i) {
    for (size_t e = 0; e < sum.size(); ++e) sum[e] += weights[i] * (*basis.values[i])[e];
  }
  return RelativeError(sum, target) <= kExplained ? weights : std::vector<double>();
}

std::vector<int> Support(const std::vector<double>& weights, const Basis& basis) {
  double largest = 0;
  for (const double weight : weights) largest = std::max(largest, std::abs(weight));
  std::vector<int> out;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (std::abs(weights[i]) > kNothing * largest) out.insert(out.end(), basis.ranks[i].begin(), basis.ranks[i].end());
  }
  std::sort(out.begin(), out.end());
  return out;
}

/// All the same; weights of several ranks that had one gradient count for each.
bool Uniform(const std::vector<double>& weights, const Basis& basis) {
  const auto each = [&](size_t i) { return weights[i] / static_cast<double>(basis.ranks[i].size()); };
  for (size_t i = 1; i < weights.size(); ++i) {
    if (std::abs(each(i) - each(0)) > 2 * kExplained * std::abs(each(0))) return false;
  }
  return true;
}

size_t DataPlaces(const RankParts& parts, const std::vector<int>* among) {
  std::set<std::string> places;
  for (const ParityRank* rank : parts.ranks) {
    if (among == nullptr || std::find(among->begin(), among->end(), rank->rank) != among->end()) {
      places.insert(DataPlaceOf(*rank));
    }
  }
  return places.size();
}

}  // namespace

std::optional<ParityCause> ExplainTied(const RankParts& parts, const PartsComparison& found, const std::string& other,
                                       const RankParts& copy) {
  std::vector<int> with;
  for (const size_t i : found.bad()) {
    bool explained = false;
    for (size_t j = 0; j < copy.size() && !explained; ++j) {
      if (!SameBut(*parts.ranks[i], *copy.ranks[j], {"pp"}) || copy.values[j].size() != parts.values[i].size())
        continue;
      std::vector<double> sum = parts.values[i];
      for (size_t e = 0; e < sum.size(); ++e) sum[e] += copy.values[j][e];
      explained = RelativeError(sum, found.expected[i]) <= 4 * found.bounds[i];
      if (explained) with.push_back(copy.ranks[j]->rank);
    }
    if (!explained) return std::nullopt;
  }
  if (with.empty()) return std::nullopt;
  return ParityCause{
      CauseKind::kPartialSum,
      Msg("never added up over the stages: the part that {} on ranks {} has is missing", other, RanksText(with)),
      RanksOf(parts, found.bad()), "pp", std::nullopt};
}

std::set<std::string> AxesAlike(const RankParts& before) {
  std::set<std::string> out;
  for (const auto& one : CoordinatesOf(before.ranks)) {
    bool alike = true;
    for (size_t i = 0; i < before.size() && alike; ++i) {
      for (size_t j = 0; j < i && alike; ++j) {
        alike = !SameBut(*before.ranks[i], *before.ranks[j], {one.first}) ||
                RelativeError(before.values[i], before.values[j]) <= kAlike;
      }
    }
    if (alike) out.insert(one.first);
  }
  return out;
}

std::optional<double> ReducedBy(const RankParts& parts, const RankParts& before) {
  if (parts.size() == 0 || before.size() < 2 || parts.entries.front()->valid) return std::nullopt;
  const Basis basis = BasisOf(before, parts.values.front().size());
  const std::vector<double> is = WeightsOf(parts.values.front(), basis);
  std::optional<double> factor;
  for (size_t i = 0; i < is.size(); ++i) {
    if (std::abs(is[i]) <= kNothing) continue;
    const double own = is[i] * static_cast<double>(DataPlaces(before, nullptr)) /
                       static_cast<double>(DataPlaces(before, &basis.ranks[i]));
    if (factor && std::abs(own - *factor) > 2 * kExplained * std::abs(*factor)) return std::nullopt;
    factor = own;
  }
  return factor;
}

double UsualReduction(const ParityRun& ranks, const ParityRank& reference, int step) {
  std::vector<double> all;
  for (const ParityEntry& entry : reference.phase(step, "gradient").entries) {
    const auto own = ReducedBy(PartsOf(ranks, step, "gradient", entry.name), PartsOf(ranks, step, "local", entry.name));
    if (own) all.push_back(*own);
  }
  if (all.empty()) return 1;
  std::nth_element(all.begin(), all.begin() + static_cast<int64_t>(all.size() / 2), all.end());
  return all[all.size() / 2];
}

std::optional<ParityCause> ExplainApart(const RankParts& parts, const PartsComparison& found, const RankParts& before,
                                        double usual, const FactorSizes& sizes) {
  const auto own = ReducedBy(parts, before);
  if (!own || std::abs(*own - usual) <= 4 * kExplained * std::abs(usual)) return std::nullopt;
  std::vector<size_t> all(parts.size());
  for (size_t i = 0; i < all.size(); ++i) all[i] = i;
  ParityCause cause = ExplainFactor(*own / usual, parts, all, found.mapping, sizes);
  if (cause.axis.empty()) return std::nullopt;  // what is no number of ranks may be anything
  cause.text = Msg("apart from what comes in: {}", cause.text);
  return cause;
}

std::optional<ParityCause> ExplainReduction(const RankParts& parts, const PartsComparison& found,
                                            const RankParts& before, const FactorSizes& sizes) {
  if (auto exchange = ExplainExchange(parts, found)) return exchange;
  const std::vector<size_t> bad = found.bad();
  if (bad.empty() || before.size() < 2 || parts.entries[bad.front()]->valid) return std::nullopt;
  const size_t first = bad.front();
  const Basis basis = BasisOf(before, parts.values[first].size());
  const std::vector<double> is = WeightsOf(parts.values[first], basis);
  const std::vector<double> should = WeightsOf(found.expected[first], basis);
  if (is.empty() || should.empty()) return std::nullopt;
  const std::vector<int> has = Support(is, basis), wanted = Support(should, basis);
  const int rank = parts.ranks[first]->rank;
  ParityCause cause;
  cause.ranks = RanksOf(parts, bad);
  cause.axis = AxisWith(parts.ranks, wanted);
  const std::string axis = cause.axis.empty() ? std::string() : cause.axis + " ";
  if (has != wanted) {
    const bool own = std::all_of(has.begin(), has.end(), [&](int r) { return r == rank; });
    cause.kind = own ? CauseKind::kPartialSum : CauseKind::kWrongGroup;
    const std::string other = AxisWith(parts.ranks, has);
    cause.text =
        own ? Msg("never reduced: rank {} has its own gradient alone, not that of {}{}", rank, axis, RanksText(wanted))
            : Msg("reduced over the wrong group: rank {} has the gradients of {}{} instead of {}{}", rank,
                  other.empty() ? other : other + " ", RanksText(has), axis, RanksText(wanted));
    return cause;
  }
  std::optional<double> factor;
  bool common = true;
  for (size_t i = 0; i < is.size(); ++i) {
    const double ratio = is[i] / should[i];
    common = common && (!factor || std::abs(ratio - *factor) <= 2 * kExplained * std::abs(*factor));
    factor = factor ? factor : std::optional(ratio);
  }
  if (common && std::abs(*factor - 1) <= 2 * kExplained) return std::nullopt;
  if (common) return ExplainFactor(*factor, parts, bad, found.mapping, sizes);
  std::vector<int> off;
  std::optional<double> by;
  for (size_t i = 0; i < is.size(); ++i) {
    const double ratio = is[i] / should[i];
    if (std::abs(ratio - 1) <= 2 * kExplained) continue;
    off.insert(off.end(), basis.ranks[i].begin(), basis.ranks[i].end());
    by = ratio;
  }
  if (off.size() < has.size()) {  // the others bring what they should
    cause.kind = CauseKind::kScaled, cause.factor = by, cause.ranks = off;
    cause.text = Msg("ranks {} bring {:.6g} times their part into the reduction over {}{}", RanksText(off), *by, axis,
                     RanksText(wanted));
    return cause;
  }
  if (Uniform(is, basis)) {
    cause.kind = CauseKind::kLocalTokens;
    cause.text =
        Msg("averaged over {}{} by local token counts: each rank counts alike, though their parts of the loss do not",
            axis, RanksText(wanted));
    return cause;
  }
  return std::nullopt;
}

}  // namespace msprobe
