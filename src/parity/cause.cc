#include "parity/cause.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

namespace msprobe {
namespace {

constexpr double kSameFactor = 1e-3;

/// With as many digits as tell it from 1.
std::string FactorText(double factor) {
  std::string out;
  for (int digits = 6; digits <= 12; ++digits) {
    out = fmt::format("{:.{}g}", factor, digits);
    if (out != "1") break;
  }
  return out;
}

bool NearFactor(double a, double b) { return std::abs(a - b) <= kSameFactor * std::abs(b); }

int AxisSize(const RankParts& parts, const std::string& axis) {
  for (const ParityRank* rank : parts.ranks) {
    const auto found = rank->axes.find(axis);
    if (found != rank->axes.end()) return static_cast<int>(found->second.size());
  }
  return 1;
}

std::vector<std::string> AxesOf(const RankParts& parts) {
  std::set<std::string> out;
  for (const ParityRank* rank : parts.ranks) {
    for (const auto& [axis, ranks] : rank->axes) {
      if (ranks.size() > 1) out.insert(axis);
    }
  }
  return {out.begin(), out.end()};
}

bool IsReplicaOver(const RankMapping& mapping, const std::string& axis) {
  return std::any_of(mapping.axes.begin(), mapping.axes.end(),
                     [&](const AxisPlace& a) { return a.axis == axis && a.role == AxisRole::kReplica; });
}

/// Whether a factor below or above 1 on this tensor may come from this axis, where another one has the same size.
bool MayBeOf(const std::string& axis, double factor, const RankParts& parts, const RankMapping& mapping,
             const FactorSizes& sizes) {
  if (axis == "pp") return CoordinatesOf(parts.ranks).contains("pp");
  if (!sizes.gradient) return axis != "dp";  // no result is reduced over rows
  if (axis == "tp" && (sizes.for_all || !IsReplicaOver(mapping, "tp"))) return false;
  return factor > 1 || !sizes.alike.contains(axis);  // a mean of what is the same divides nothing
}

/// The axes whose size this factor is, or one over it, as far as nothing tells which; tp comes first.
std::vector<std::string> AxesOfFactor(double factor, const RankParts& parts, const RankMapping& mapping,
                                      const FactorSizes& sizes) {
  std::vector<std::string> out;
  for (const std::string& axis : AxesOf(parts)) {
    const double size = AxisSize(parts, axis);
    if (NearFactor(factor, size) || NearFactor(factor, 1 / size)) out.push_back(axis);
  }
  std::stable_partition(out.begin(), out.end(), [](const std::string& axis) { return axis == "tp"; });
  std::vector<std::string> likely;
  for (const std::string& axis : out) {
    if (MayBeOf(axis, factor, parts, mapping, sizes)) likely.push_back(axis);
  }
  return likely.empty() ? out : likely;
}

Message SizesText(const std::vector<std::string>& axes) {
  Message out(axes.front());
  for (size_t i = 1; i < axes.size(); ++i) out = Msg("{} or of {}", out, axes[i]);
  return out;
}

std::vector<double> Scaled(const RankParts& parts, const PartsComparison& found, size_t i) {
  std::vector<double> out = parts.values[i];
  if (const auto& valid = parts.entries[i]->valid) {
    out.erase(out.begin() + valid->second, out.end());
    out.erase(out.begin(), out.begin() + valid->first);
  }
  for (double& value : out) value /= found.scales[i];
  return out;
}

/// Parts that differ in `axis` only, by their order along it.
std::vector<std::vector<size_t>> GroupsAlong(const RankParts& parts, const std::string& axis) {
  std::map<std::vector<int>, std::vector<size_t>> groups;
  for (size_t i = 0; i < parts.size(); ++i) {
    const auto found = parts.ranks[i]->axes.find(axis);
    if (found != parts.ranks[i]->axes.end()) groups[found->second].push_back(i);
  }
  std::vector<std::vector<size_t>> out;
  for (auto& [key, group] : groups) out.push_back(std::move(group));
  return out;
}

std::vector<std::vector<size_t>> AlikeIn(const std::vector<size_t>& group,
                                         const std::vector<std::vector<double>>& values, double bound) {
  std::vector<std::vector<size_t>> out;
  for (const size_t i : group) {
    const auto same = std::find_if(out.begin(), out.end(), [&](const std::vector<size_t>& cluster) {
      return RelativeError(values[i], values[cluster.front()]) <= bound;
    });
    same == out.end() ? out.push_back({i}) : same->push_back(i);
  }
  return out;
}

Message ClustersText(const RankParts& parts, const std::vector<std::vector<size_t>>& clusters) {
  Message out;
  for (const auto& cluster : clusters) {
    const std::string ranks = RanksText(RanksOf(parts, cluster));
    out = out.empty() ? Message(ranks) : Msg("{} and {}", out, ranks);
  }
  return out;
}

/// Whether each of these is a replica of what is right elsewhere.
bool AreReplicas(const RankParts& parts, const std::vector<size_t>& bad, const RankMapping& mapping) {
  return std::all_of(bad.begin(), bad.end(), [&](size_t i) {
    for (size_t j = 0; j < parts.size(); ++j) {
      const bool right = std::find(bad.begin(), bad.end(), j) == bad.end();
      if (right && mapping.places[i] == mapping.places[j]) return true;
    }
    return false;
  });
}

/// Parts that should be replicas and whose sum, or mean, over an axis is the whole: they were never brought
/// together.
std::optional<ParityCause> NeverReduced(const RankParts& parts, const PartsComparison& found,
                                        const std::vector<std::vector<double>>& values) {
  for (const AxisPlace& place : found.mapping.axes) {
    if (place.role != AxisRole::kReplica) continue;
    for (const auto& group : GroupsAlong(parts, place.axis)) {
      const double bound = 4 * found.bounds[group.front()];
      const auto clusters = AlikeIn(group, values, bound);
      if (clusters.size() < 2) continue;
      std::vector<double> sum(values[group.front()].size());
      for (const auto& cluster : clusters) {
        for (size_t e = 0; e < sum.size(); ++e) sum[e] += values[cluster.front()][e];
      }
      const auto factor = FactorBetween(sum, found.expected[group.front()], bound);
      const double count = static_cast<double>(clusters.size());
      if (!factor || !(NearFactor(*factor, 1) || NearFactor(*factor, count))) continue;
      const std::vector<int> ranks = RanksOf(parts, group);
      const std::string all = RanksText(ranks);
      if (clusters.size() == group.size()) {
        return ParityCause{CauseKind::kPartialSum,
                           NearFactor(*factor, 1)
                               ? Msg("a partial sum of each rank, never reduced over {} {}", place.axis, all)
                               : Msg("each rank keeps its own, never averaged over {} {}", place.axis, all),
                           ranks, place.axis, std::nullopt};
      }
      return ParityCause{
          CauseKind::kWrongGroup,
          Msg("reduced over the wrong group: over {} instead of {} {}", ClustersText(parts, clusters), place.axis, all),
          ranks, place.axis, std::nullopt};
    }
  }
  return std::nullopt;
}

std::optional<ParityCause> Exchanged(const RankParts& parts, const PartsComparison& found,
                                     const std::vector<std::vector<double>>& values) {
  for (const size_t i : found.bad()) {
    for (size_t j = 0; j < parts.size(); ++j) {
      if (i == j || found.mapping.places[i] == found.mapping.places[j]) continue;
      if (RelativeError(values[i], found.expected[j]) > found.bounds[j]) continue;
      return ParityCause{
          CauseKind::kShardExchanged,
          Msg("a shard is exchanged: rank {} holds the part of rank {}", parts.ranks[i]->rank, parts.ranks[j]->rank),
          RanksOf(parts, found.bad()), "", std::nullopt};
    }
  }
  return std::nullopt;
}

std::optional<ParityCause> CommonFactor(const RankParts& parts, const PartsComparison& found,
                                        const std::vector<std::vector<double>>& values, const FactorSizes& sizes) {
  const std::vector<size_t> bad = found.bad();
  std::optional<double> common;
  for (const size_t i : bad) {
    // A factor that leaves most of the difference explains nothing.
    const double left = std::min(4 * found.bounds[i], found.errors[i] / 4);
    const auto factor = FactorBetween(values[i], found.expected[i], left);
    if (!factor || (common && !NearFactor(*factor, *common))) return std::nullopt;
    common = factor;
  }
  if (!common) return std::nullopt;
  return ExplainFactor(*common, parts, bad, found.mapping, sizes);
}

/// Without what all rows have in common, such as a bias that is added behind a reduction. False for too few rows.
bool Centre(int64_t columns, std::vector<double>* values) {
  const auto width = static_cast<size_t>(columns);
  if (width == 0 || values->size() < 4 * width) return false;
  const size_t rows = values->size() / width;
  for (size_t c = 0; c < width; ++c) {
    double sum = 0;
    for (size_t r = 0; r < rows; ++r) sum += (*values)[r * width + c];
    for (size_t r = 0; r < rows; ++r) (*values)[r * width + c] -= sum / static_cast<double>(rows);
  }
  return true;
}

std::optional<ParityCause> Centred(const RankParts& parts, PartsComparison found,
                                   std::vector<std::vector<double>> values, const FactorSizes& sizes) {
  for (size_t i = 0; i < parts.size(); ++i) {
    if (parts.entries[i]->shape.size() < 2 || parts.entries[i]->valid) return std::nullopt;
    const double whole = SumOfSquares(found.expected[i]);
    const int64_t columns = parts.entries[i]->shape.back();
    if (!Centre(columns, &values[i]) || !Centre(columns, &found.expected[i])) return std::nullopt;
    const double left = SumOfSquares(found.expected[i]);
    if (!(left > 1e-6 * whole)) return std::nullopt;
    found.bounds[i] *= std::sqrt(whole / left);
  }
  if (auto cause = NeverReduced(parts, found, values)) return cause;
  for (size_t i = 0; i < parts.size(); ++i) found.errors[i] = RelativeError(values[i], found.expected[i]);
  if (found.bad().empty()) {
    std::vector<size_t> all(parts.size());
    for (size_t i = 0; i < all.size(); ++i) all[i] = i;
    return ParityCause{
        CauseKind::kReducedTwice,
        Msg("only what all rows have in common differs: a bias that is added too often, such as by each rank "
            "before the sum"),
        RanksOf(parts, all), "", std::nullopt};
  }
  const auto factor = CommonFactor(parts, found, values, sizes);
  return factor && !factor->axis.empty() ? factor : std::nullopt;  // what is no number of ranks may be anything
}

}  // namespace

std::string_view NameOf(CauseKind kind) {
  static constexpr std::array kNames{
#define MSP_CAUSE(id, name) std::string_view(name),
#include "parity/causes.def"
#undef MSP_CAUSE
  };
  return kNames[static_cast<size_t>(kind)];
}

std::string RanksText(const std::vector<int>& ranks) { return fmt::format("[{}]", fmt::join(ranks, ", ")); }

std::vector<int> RanksOf(const RankParts& parts, const std::vector<size_t>& which) {
  std::vector<int> out;
  for (const size_t i : which) out.push_back(parts.ranks[i]->rank);
  std::sort(out.begin(), out.end());
  return out;
}

std::string AxisWith(const std::vector<const ParityRank*>& ranks, const std::vector<int>& together) {
  for (const ParityRank* rank : ranks) {
    for (const auto& [axis, group] : rank->axes) {
      if (group.size() < 2) continue;
      std::vector<int> sorted = group;
      std::sort(sorted.begin(), sorted.end());
      if (sorted == together) return axis;
    }
  }
  return "";
}

ParityCause ExplainFactor(double factor, const RankParts& parts, const std::vector<size_t>& bad,
                          const RankMapping& mapping, const FactorSizes& sizes) {
  ParityCause cause;
  const std::string by = FactorText(factor);
  cause.kind = CauseKind::kScaled, cause.factor = factor, cause.ranks = RanksOf(parts, bad);
  if (bad.size() < parts.size()) {
    if (AreReplicas(parts, bad, mapping)) cause.kind = CauseKind::kReplicaDrift;
    cause.text = Msg("{} times what it should be on ranks {} alone", by, RanksText(cause.ranks));
    return cause;
  }
  const std::vector<std::string> axes = AxesOfFactor(factor, parts, mapping, sizes);
  const bool micro = sizes.micro_batches > 1 &&
                     (NearFactor(factor, sizes.micro_batches) || NearFactor(factor * sizes.micro_batches, 1));
  if (axes.empty() || (micro && !sizes.gradient && axes.front() != "tp")) {
    cause.text = micro ? Msg("scaled by {}: {} micro batches", by, sizes.micro_batches) : Msg("scaled by {}", by);
    return cause;
  }
  cause.axis = axes.front();
  const bool data = sizes.gradient && cause.axis != "tp";
  const Message of = SizesText(axes);
  const Message also = micro ? Msg(" (or by the number of micro batches)") : Message();
  if (factor > 1) {
    cause.kind = data ? CauseKind::kSumForMean : CauseKind::kReducedTwice;
    cause.text =
        data ? Msg("scaled by {}, the size of {}: summed where it must be averaged, or reduced twice{}", by, of, also)
             : Msg("scaled by {}, the size of {}: reduced twice{}", by, of, also);
  } else {
    cause.kind = CauseKind::kMeanForSum;
    cause.text = Msg("scaled by {}, one over the size of {}: averaged where it must be summed, or averaged twice{}", by,
                     of, also);
  }
  return cause;
}

std::optional<ParityCause> ExplainExchange(const RankParts& parts, const PartsComparison& found) {
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < parts.size(); ++i) values.push_back(Scaled(parts, found, i));
  return Exchanged(parts, found, values);
}

ParityCause ExplainParts(const RankParts& parts, const PartsComparison& found, const FactorSizes& sizes) {
  std::vector<std::vector<double>> values;
  for (size_t i = 0; i < parts.size(); ++i) values.push_back(Scaled(parts, found, i));
  const std::vector<size_t> bad = found.bad();
  if (sizes.reduced) {
    if (auto cause = NeverReduced(parts, found, values)) return *cause;
  }
  if (auto cause = Exchanged(parts, found, values)) return *cause;
  if (auto cause = CommonFactor(parts, found, values, sizes)) return *cause;
  if (!sizes.gradient) {
    if (auto cause = Centred(parts, found, values, sizes)) return *cause;
  }
  ParityCause cause;
  cause.ranks = RanksOf(parts, bad);
  const auto is_zero = [&](size_t i) { return SumOfSquares(values[i]) == 0; };
  if (std::all_of(bad.begin(), bad.end(), is_zero)) {
    cause.kind = CauseKind::kZero;
    cause.text = Msg("zero on ranks {}", RanksText(cause.ranks));
    return cause;
  }
  const bool all = bad.size() == parts.size(), replica = !all && AreReplicas(parts, bad, found.mapping);
  if (!all) cause.kind = replica ? CauseKind::kReplicaDrift : CauseKind::kOneRank;
  if (!std::isfinite(found.worst())) {
    const auto nothing = [&](size_t i) { return SumOfSquares(found.expected[i]) == 0; };
    cause.text = std::all_of(bad.begin(), bad.end(), nothing)
                     ? Msg("not zero on ranks {}, where the reference is zero", RanksText(cause.ranks))
                     : Msg("some values on ranks {} are not finite", RanksText(cause.ranks));
    return cause;
  }
  if (all) {
    const bool everywhere = static_cast<int>(bad.size()) == parts.ranks.front()->world;
    cause.text = everywhere ? Msg("it differs by {:.3g} of its norm on all ranks", found.worst())
                            : Msg("it differs by {:.3g} of its norm on ranks {}, which have it", found.worst(),
                                  RanksText(cause.ranks));
    return cause;
  }
  cause.text =
      replica ? Msg("a replica that drifted: ranks {} differ from the others by {:.3g} of its norm",
                    RanksText(cause.ranks), found.worst())
              : Msg("the part of ranks {} alone differs, by {:.3g} of its norm", RanksText(cause.ranks), found.worst());
  return cause;
}

}  // namespace msprobe
