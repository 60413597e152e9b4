// The norm of all gradients: what each rank says against what its gradients are.
#include <algorithm>
#include <cmath>
#include <set>

#include "parity/judge.h"

namespace msprobe {
namespace {

constexpr double kLeastSlack = 5e-6;  // of a norm that sums float32 over all parameters
constexpr double kNorms = 16;         // as far from what its gradients give as that of the reference is, so many times

bool NearNorm(double a, double b, double slack) {
  return std::abs(a - b) <= slack * std::max(std::abs(a), std::abs(b));
}

/// Squares of the gradients of the ranks, by how they lie.
struct Squares {
  double slack = kLeastSlack;                                // of their sum
  double all = 0;                                            // each element once
  std::map<std::string, double> replica, split;              // by axis
  std::map<std::string, int> sizes;                          // of axes
  std::map<std::string, double> parameters;                  // of each
  std::map<std::string, std::map<int, double>> split_parts;  // of parameters that are split: what each rank has
  std::map<int, double> own;                                 // of all that a rank holds
  std::map<std::string, int> marked;                         // as split, though whole on so many ranks of tp
};

Squares SquaresOf(const ParityRun& run, const ParityRun& reference, int step) {
  Squares out;
  std::set<std::string> names;
  for (const ParityRank& rank : run) {
    for (const auto& [axis, group] : rank.axes) out.sizes[axis] = static_cast<int>(group.size());
    for (const ParityEntry& entry : rank.phase(step, "gradient").entries) names.insert(entry.name);
  }
  for (const std::string& name : names) {
    const RankParts parts = PartsOf(run, step, "gradient", name);
    const ParityEntry* golden = reference.empty() ? nullptr : reference.front().phase(step, "gradient").Find(name);
    // A tied weight has a second name on the last stage of a pipeline, and counts once.
    if (golden == nullptr && !reference.empty()) continue;
    const ParityEntry* first = parts.entries.front();
    const std::vector<int64_t> shape = golden != nullptr  ? golden->shape
                                       : parts.declared() ? first->whole
                                                          : first->shape;
    const std::vector<RankMapping> mappings = MappingsOf(parts, shape);
    if (mappings.empty()) continue;
    const bool wrongly = !first->unknown.empty() || (parts.declared() && first->whole != shape);
    const auto group = parts.ranks.front()->axes.find("tp");
    if (wrongly && first->shape == shape && group != parts.ranks.front()->axes.end()) {
      out.marked[name] = static_cast<int>(group->second.size());
    }
    double squares = 0;
    for (const double value : WholeOf(parts, mappings.front(), shape)) squares += std::isnan(value) ? 0 : value * value;
    out.all += squares;
    out.parameters[name] = squares;
    const std::vector<std::vector<int64_t>>& place = mappings.front().places.front().indices;
    for (const auto& [axis, coordinates] : CoordinatesOf(parts.ranks)) {
      bool split = false;
      for (size_t i = 1; i < parts.size(); ++i) {
        split = split || (mappings.front().places[i].indices != place && coordinates[i] != coordinates[0]);
      }
      (split ? out.split : out.replica)[axis] += squares;
    }
    const bool whole = std::all_of(mappings.front().places.begin(), mappings.front().places.end(),
                                   [&](const RankPlace& one) { return one.indices == place; });
    for (size_t i = 0; i < parts.size(); ++i) {
      std::vector<double> kept = parts.values[i];
      if (const auto& valid = parts.entries[i]->valid) {
        kept = {parts.values[i].begin() + valid->first, parts.values[i].begin() + valid->second};
      }
      const double held = SumOfSquares(kept);
      out.own[parts.ranks[i]->rank] += held;
      if (!whole) out.split_parts[name][parts.ranks[i]->rank] = held;
    }
  }
  return out;
}

std::optional<Message> ByAxis(double squares, const Squares& s) {
  for (const auto& one : s.sizes) {
    const std::string& axis = one.first;
    const int size = one.second;
    if (size < 2) continue;
    const double n = size;
    const auto find = [&](const auto& map) { return map.contains(axis) ? map.at(axis) : 0.0; };
    const double replica = find(s.replica), split = find(s.split);
    if (replica > 0 && split > 0) {
      if (NearNorm(squares, s.all + (n - 1) * replica, s.slack)) {
        return Msg("what the ranks of {} hold alike is counted {} times", axis, size);
      }
      if (NearNorm(squares, s.all - replica, s.slack))
        return Msg("what the ranks of {} hold alike is not counted", axis);
      if (NearNorm(squares, s.all - replica * (1 - 1 / n), s.slack)) {
        return Msg("what the ranks of {} hold alike is divided by their number", axis);
      }
      if (NearNorm(squares, s.all + (n - 1) * split, s.slack))
        return Msg("the shards of {} are counted {} times", axis, size);
      if (NearNorm(squares, s.all - split, s.slack)) return Msg("the shards of {} are not counted", axis);
    }
    if (NearNorm(squares, n * s.all, s.slack))
      return Msg("every gradient is counted {} times, the size of {}", size, axis);
    if (NearNorm(n * squares, s.all, s.slack))
      return Msg("the sum of squares is divided by {}, the size of {}", size, axis);
    if (NearNorm(squares, n * n * s.all, s.slack)) return Msg("it is {} times too large, the size of {}", size, axis);
    if (NearNorm(n * n * squares, s.all, s.slack))
      return Msg("it is one {}th of what it should be, the size of {}", size, axis);
  }
  return std::nullopt;
}

/// Every rank has the norm of what it holds.
bool EachCountsItsOwn(const ParityRun& ranks, int step, const Squares& s) {
  return std::all_of(ranks.begin(), ranks.end(), [&](const ParityRank& rank) {
    const auto said = rank.Number(step, "norm");
    const auto own = s.own.find(rank.rank);
    return !said || (own != s.own.end() && NearNorm(*said * *said, own->second, s.slack));
  });
}

/// What explains a norm, and the parameter that it is about, if it is one.
struct NormCause {
  Message text;
  std::string name;
};

/// A parameter that is marked as divided, though each rank has the whole, is counted by each.
std::optional<NormCause> ByMark(double squares, const Squares& s) {
  double all = 0;
  for (const auto& [name, copies] : s.marked) {
    const double more = (copies - 1) * s.parameters.at(name);
    all += more;
    const bool alone = more > 4 * s.slack * s.all && NearNorm(squares, s.all + more, s.slack);
    const bool together = &name == &s.marked.rbegin()->first && NearNorm(squares, s.all + all, s.slack);
    if (!alone && !(together && all > 4 * s.slack * s.all)) continue;
    return NormCause{Msg("{} is marked as split and is whole on each rank: it is counted {} times", name, copies),
                     name};
  }
  return std::nullopt;
}

NormCause WhyWrong(int rank, double squares, const Squares& s, bool own_alone) {
  if (own_alone) {
    return {Msg("rank {} counts what it holds alone: the shards of other ranks are not counted", rank), ""};
  }
  if (auto why = ByMark(squares, s)) return *why;
  if (auto why = ByAxis(squares, s)) return {*why, ""};
  for (const auto& [name, parts] : s.split_parts) {
    const double all = s.parameters.at(name);
    if (all < 4 * s.slack * s.all) continue;
    for (const auto& [other, held] : parts) {
      if (NearNorm(squares, s.all - all + held, s.slack))
        return {Msg("of {} the part of rank {} alone is counted", name, other), name};
    }
  }
  // The same of all layers.
  std::map<std::string, std::map<int, double>> kinds;
  std::map<std::string, double> whole;
  for (const auto& [name, parts] : s.split_parts) {
    const std::string kind = name.substr(name.rfind('.') + 1);
    whole[kind] += s.parameters.at(name);
    for (const auto& [other, held] : parts) kinds[kind][other] += held;
  }
  for (const auto& [kind, parts] : kinds) {
    for (const auto& [other, held] : parts) {
      if (whole[kind] - held < 4 * s.slack * s.all || !NearNorm(squares, s.all - whole[kind] + held, s.slack)) continue;
      return {Msg("of {} the part of rank {} alone is counted", kind, other), ""};
    }
  }
  for (const auto& [other, held] : s.own) {
    if (other != rank && NearNorm(squares, s.all - held, s.slack))
      return {Msg("the shard of rank {} is not counted", other), ""};
  }
  for (const auto& [name, own] : s.parameters) {
    if (own < 4 * s.slack * s.all) continue;
    if (NearNorm(squares, s.all - own, s.slack)) return {Msg("{} is not counted", name), name};
    if (NearNorm(squares, s.all + own, s.slack)) return {Msg("{} is counted twice", name), name};
  }
  return {Msg("no shard that is counted once too often or not at all explains it"), ""};
}

/// The factor by which a parameter's gradient was clipped on a rank.
std::optional<double> ClippedBy(const ParityRank& rank, int step, const std::string& name) {
  const ParityEntry* before = rank.phase(step, "gradient").Find(name);
  const ParityEntry* after = rank.phase(step, "clipped").Find(name);
  if (before == nullptr || after == nullptr) return std::nullopt;
  return FactorBetween(ElementsOf(*after), ElementsOf(*before), 1e-3);
}

void JudgeClipping(const ParityRun& ranks, int step, ParityResult* result) {
  for (const ParityRank& rank : ranks) {
    const auto norm = rank.Number(step, "norm"), limit = rank.Number(step, "limit");
    if (!norm || !limit || *limit <= 0) continue;
    const double expected = std::min(1.0, *limit / (*norm + 1e-6));
    for (const ParityEntry& entry : rank.phase(step, "clipped").entries) {
      const auto factor = ClippedBy(rank, step, entry.name);
      if (!factor || std::abs(*factor - expected) <= 1e-3 * expected) continue;
      result->findings.push_back(
          {step,
           "clipped",
           entry.name,
           {CauseKind::kClip,
            Msg("scaled by {:.6g} on rank {}, where clipping by the norm {:.6g} to {:.6g} gives {:.6g}", *factor,
                rank.rank, *norm, *limit, expected),
            {rank.rank},
            "",
            *factor / expected},
           std::abs(*factor / expected - 1),
           1e-3,
           true});
      return;
    }
  }
}

}  // namespace

void JudgeNorm(const ParityRuns& runs, int step, ParityResult* result) {
  const bool any = std::any_of(runs.ranks.begin(), runs.ranks.end(),
                               [&](const ParityRank& rank) { return rank.Number(step, "norm").has_value(); });
  if (!any) {
    result->not_compared["no function that clips was seen"].push_back("norm of step " + std::to_string(step));
    return;
  }
  Squares squares = SquaresOf(runs.ranks, runs.reference, step);
  if (!runs.reference.empty()) {
    // How exactly this program sums: what its norm of one rank is away from what that rank's gradients give.
    const auto said = runs.reference.front().Number(step, "norm");
    const double own = std::sqrt(SquaresOf(runs.reference, runs.reference, step).all);
    if (said && own > 0) squares.slack = std::max(kLeastSlack, kNorms * std::abs(*said / own - 1));
  }
  const double norm = std::sqrt(squares.all);
  for (const ParityRank& rank : runs.ranks) {
    const auto said = rank.Number(step, "norm");
    if (!said) continue;
    const bool right = NearNorm(*said, norm, squares.slack);
    result->rows.push_back({step, "norm", "rank " + std::to_string(rank.rank), "whole",
                            right ? PartsKind::kEqual : PartsKind::kDiffers, std::abs(*said / norm - 1),
                            squares.slack});
    if (right) continue;
    const NormCause why = WhyWrong(rank.rank, *said * *said, squares, EachCountsItsOwn(runs.ranks, step, squares));
    result->findings.push_back(
        {step,
         "norm",
         why.name,
         {CauseKind::kNorm,
          Msg("rank {} has {:.8g}, its gradients give {:.8g}: {}", rank.rank, *said, norm, why.text),
          {rank.rank},
          "",
          std::nullopt},
         std::abs(*said / norm - 1),
         squares.slack,
         true});
    break;
  }
  JudgeClipping(runs.ranks, step, result);
}

}  // namespace msprobe
