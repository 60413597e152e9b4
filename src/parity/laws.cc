// What has to hold between the ranks of one run, whatever it computes.
#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "parity/judge.h"

namespace msprobe {
namespace {

constexpr int64_t kEnough = 16;  // elements that are not equal by chance
constexpr double kOwn = 1e-6;    // as near is a gradient to what it was before any reduction

bool IsConstant(const ParityEntry& entry) {
  const std::vector<double> values = ElementsOf(entry);
  return std::all_of(values.begin(), values.end(), [&](double v) { return v == values.front(); });
}

bool SameBoxes(const ParityEntry& a, const ParityEntry& b) {
  if (a.boxes.size() != b.boxes.size() || a.valid || b.valid || a.summand() || b.summand()) return false;
  for (size_t i = 0; i < a.boxes.size(); ++i) {
    if (a.boxes[i].begin != b.boxes[i].begin || a.boxes[i].size != b.boxes[i].size) return false;
  }
  return true;
}

std::vector<std::string> NamesOf(const ParityRun& ranks, int step, const std::string& phase) {
  std::vector<std::string> out;
  std::set<std::string> known;
  for (const ParityRank& rank : ranks) {
    for (const ParityEntry& entry : rank.phase(step, phase).entries) {
      if (known.insert(entry.name).second) out.push_back(entry.name);
    }
  }
  return out;
}

bool Known(const ParityResult& result, const std::string& phase, const std::string& name) {
  return std::any_of(result.findings.begin(), result.findings.end(),
                     [&](const ParityFinding& f) { return f.phase == phase && f.name == name; });
}

/// Which parts have to be alike: those of one place, those that a wrapper for data parallelism keeps alike, those that
/// were equal before the first step, and those whose reduced gradient is the same in every bit.
class Replicas {
 public:
  explicit Replicas(const ParityRun& ranks) : ranks_(ranks) {}

  /// Parts by what has to be alike.
  std::vector<std::vector<size_t>> Groups(const std::string& parameter, const RankParts& parts) const {
    std::vector<std::vector<size_t>> out;
    std::vector<bool> taken(parts.size());
    for (size_t first = 0; first < parts.size(); ++first) {
      if (taken[first]) continue;
      std::vector<size_t>& group = out.emplace_back(std::vector<size_t>{first});
      taken[first] = true;
      for (size_t k = 0; k < group.size(); ++k) {
        for (size_t i = 0; i < parts.size(); ++i) {
          const size_t own = group[k];
          if (taken[i] ||
              !Of(parameter, *parts.entries[own], parts.ranks[own]->rank, *parts.entries[i], parts.ranks[i]->rank)) {
            continue;
          }
          taken[i] = true;
          group.push_back(i);
        }
      }
      std::sort(group.begin(), group.end());
    }
    return out;
  }

  bool Of(const std::string& parameter, const ParityEntry& a, int first, const ParityEntry& b, int second) const {
    if (!a.boxes.empty() || !b.boxes.empty()) return SameBoxes(a, b);
    const ParityEntry* x = Find(first, parameter);
    const ParityEntry* y = Find(second, parameter);
    if (x == nullptr || y == nullptr) return false;
    if (!x->boxes.empty() || !y->boxes.empty()) return x->boxes.size() == y->boxes.size() && SameBoxes(*x, *y);
    if (a.valid || b.valid || a.shape != b.shape || x->shape != y->shape) return false;
    return SameBytes(*x, *y) || Promised(*x, first, second) || SameGradient(parameter, first, second);
  }

 private:
  const ParityRank& RankOf(int number) const {
    return *std::find_if(ranks_.begin(), ranks_.end(), [&](const ParityRank& one) { return one.rank == number; });
  }
  const ParityEntry* Find(int rank, const std::string& name) const {
    return RankOf(rank).phase(0, "parameter").Find(name);
  }
  bool Promised(const ParityEntry& entry, int first, int second) const {
    return std::any_of(entry.replica.begin(), entry.replica.end(), [&](const std::string& axis) {
      const auto group = RankOf(first).axes.find(axis);
      return group != RankOf(first).axes.end() &&
             std::find(group->second.begin(), group->second.end(), second) != group->second.end();
    });
  }
  bool SameGradient(const std::string& parameter, int first, int second) const {
    const ParityEntry* x = RankOf(first).phase(0, "gradient").Find(parameter);
    const ParityEntry* y = RankOf(second).phase(0, "gradient").Find(parameter);
    return x != nullptr && y != nullptr && !x->valid && !y->valid && !x->summand() && !y->summand() &&
           x->elements() >= kEnough && SameBytes(*x, *y) && !IsConstant(*x);
  }
  const ParityRun& ranks_;
};

/// The rank that no other agrees with; of two nobody can say.
std::vector<int> Apart(const RankParts& parts, const std::vector<size_t>& replicas) {
  std::vector<int> alone;
  for (const size_t i : replicas) {
    const bool lone = std::none_of(replicas.begin(), replicas.end(),
                                   [&](size_t j) { return i != j && SameBytes(*parts.entries[i], *parts.entries[j]); });
    if (lone) alone.push_back(parts.ranks[i]->rank);
  }
  return alone;
}

/// Parts without a place that differ from the start may be shards, or replicas of which nothing says so.
void NoteUnknown(const ParityRun& ranks, ParityResult* result) {
  const Replicas replicas(ranks);
  for (const std::string& name : NamesOf(ranks, 0, "parameter")) {
    const RankParts parts = PartsOf(ranks, 0, "parameter", name);
    if (parts.declared() || replicas.Groups(name, parts).size() < 2) continue;
    ++result->laws.unknown;
    result->not_compared["it differs from the start, and nothing says whether these are shards or replicas"].push_back(
        "parameter " + name);
  }
}

/// Whether each of these has the gradient that it had before any reduction, by one factor.
bool EachHasItsOwn(const RankParts& parts, const std::vector<size_t>& same, const RankParts& before) {
  std::optional<double> common;
  for (const size_t i : same) {
    const auto own = std::find(before.ranks.begin(), before.ranks.end(), parts.ranks[i]);
    if (own == before.ranks.end()) return false;
    const auto& local = before.values[static_cast<size_t>(own - before.ranks.begin())];
    const auto factor = FactorBetween(parts.values[i], local, kOwn);
    if (!factor || (common && std::abs(*factor / *common - 1) > kOwn)) return false;
    common = factor;
  }
  return common.has_value();
}

/// Which of these have the same bits: "[0, 1] [2, 3]".
std::string AlikeText(const RankParts& parts, const std::vector<size_t>& replicas) {
  std::vector<std::vector<size_t>> alike;
  for (const size_t i : replicas) {
    const auto same = std::find_if(alike.begin(), alike.end(), [&](const std::vector<size_t>& one) {
      return SameBytes(*parts.entries[i], *parts.entries[one.front()]);
    });
    same == alike.end() ? alike.push_back({i}) : same->push_back(i);
  }
  std::string out;
  for (const std::vector<size_t>& one : alike) out += (out.empty() ? "" : " ") + RanksText(RanksOf(parts, one));
  return out;
}

/// True where parts that have to be alike are not.
bool JudgeGroup(const RankParts& parts, const std::vector<size_t>& same, const RankParts& before, int step,
                const std::string& phase, const std::string& name, ParityResult* result) {
  const size_t first = same.front();
  const bool equal = std::all_of(same.begin(), same.end(),
                                 [&](size_t i) { return SameBytes(*parts.entries[first], *parts.entries[i]); });
  if (equal) return false;
  const std::vector<int> all = RanksOf(parts, same), alone = Apart(parts, same);
  double error = 0;
  for (const size_t i : same) error = std::max(error, RelativeError(parts.values[i], parts.values[first]));
  ParityCause cause{CauseKind::kReplicaDrift, {}, all, AxisWith(parts.ranks, all), std::nullopt};
  // Over other axes replicas may compute the same, and reduce nothing.
  const bool data = !cause.axis.empty() && IsDataAxis(cause.axis);
  if (data && error > 10 * kOwn && EachHasItsOwn(parts, same, before)) {
    cause.kind = CauseKind::kPartialSum;
    cause.text = Msg("never reduced: each of ranks {} has its own gradient alone", RanksText(all));
  } else if (!alone.empty() && alone.size() * 2 < all.size()) {
    cause.ranks = alone;
    cause.text =
        Msg("a replica that drifted: ranks {} hold it alike, and their bits differ by {:.3g} of its norm, on "
            "ranks {}",
            RanksText(all), error, RanksText(alone));
  } else if (alone.size() < all.size()) {
    cause.text =
        Msg("a replica that drifted: ranks {} hold it alike, and their bits differ by {:.3g} of its norm between "
            "{}",
            RanksText(all), error, AlikeText(parts, same));
  } else {
    cause.text = Msg("a replica that drifted: ranks {} hold it alike, and their bits differ by {:.3g} of its norm",
                     RanksText(all), error);
  }
  result->findings.push_back({step, phase, name, std::move(cause), error, 0, true});
  return true;
}

void JudgeReplicas(const ParityRun& ranks, int step, const std::string& phase, ParityResult* result) {
  const Replicas replicas(ranks);
  for (const std::string& name : NamesOf(ranks, step, phase)) {
    if (Known(*result, phase, name)) continue;
    const RankParts parts = PartsOf(ranks, step, phase, name);
    const RankParts before = phase == "gradient" ? PartsOf(ranks, step, "local", name) : RankParts{};
    const std::vector<std::vector<size_t>> groups = replicas.Groups(name.substr(0, name.find(' ')), parts);
    for (const std::vector<size_t>& group : groups) {
      result->laws.replicas += group.size() > 1;
      if (JudgeGroup(parts, group, before, step, phase, name, result)) break;
    }
  }
}

/// Shards that are drawn from one random state.
void JudgeShards(const ParityRun& ranks, ParityResult* result) {
  for (const std::string& name : NamesOf(ranks, 0, "parameter")) {
    const RankParts parts = PartsOf(ranks, 0, "parameter", name);
    if (!parts.declared() || parts.size() < 2) continue;
    bool looked = false;
    for (size_t i = 1; i < parts.size(); ++i) {
      const ParityEntry &a = *parts.entries[0], &b = *parts.entries[i];
      if (SameBoxes(a, b) || a.elements() < kEnough) continue;
      result->laws.shards += !std::exchange(looked, true);
      if (!SameBytes(a, b) || IsConstant(a)) continue;
      result->findings.push_back(
          {0,
           "parameter",
           name,
           {CauseKind::kRandomState,
            Msg("ranks {} and {} hold different shards with the same values: one random state where "
                "it must differ",
                parts.ranks[0]->rank, parts.ranks[i]->rank),
            {parts.ranks[0]->rank, parts.ranks[i]->rank},
            "",
            std::nullopt},
           0,
           0,
           true});
      break;
    }
  }
}

void JudgeDropout(const ParityRun& ranks, int step, ParityResult* result) {
  for (const std::string& name : NamesOf(ranks, step, "dropout")) {
    const RankParts masks = PartsOf(ranks, step, "dropout", name), values = PartsOf(ranks, step, "dropped", name);
    if (masks.size() < 2 || values.size() != masks.size()) continue;
    if (masks.entries[0]->elements() < kEnough || IsConstant(*masks.entries[0])) continue;
    ++result->laws.dropouts;
    for (size_t i = 1; i < masks.size(); ++i) {
      const auto group = masks.ranks[0]->axes.find("tp");
      const bool tensor_parallel =
          group != masks.ranks[0]->axes.end() &&
          std::find(group->second.begin(), group->second.end(), masks.ranks[i]->rank) != group->second.end();
      const bool same_values = SameBytes(*values.entries[0], *values.entries[i]);
      const bool same_mask = SameBytes(*masks.entries[0], *masks.entries[i]);
      if (same_values == same_mask) continue;
      const int a = masks.ranks[0]->rank, b = masks.ranks[i]->rank;
      if (!tensor_parallel) {
        if (same_mask)
          result->notes.push_back(Msg("ranks {} and {} drop the same places of different rows ({})", a, b, name));
        break;
      }
      const Message why = same_mask
                              ? Msg("ranks {} and {} drop the same places of different shards: one random state where "
                                    "it must differ",
                                    a, b)
                              : Msg("ranks {} and {} drop different places of what they hold alike: random states "
                                    "that must be equal differ",
                                    a, b);
      // The same values prove it, whatever else is wrong.
      const bool apart = same_values && !result->findings.empty();
      result->findings.push_back(
          {step, "dropout", name, {CauseKind::kRandomState, why, {a, b}, "tp", std::nullopt}, 0, 0, true, apart});
      return;
    }
  }
}

}  // namespace

void JudgeLaws(const ParityRuns& runs, int step, ParityResult* result) {
  const ParityRun& ranks = runs.ranks;
  if (step == 0) {
    JudgeShards(ranks, result);
    if (runs.reference.empty()) NoteUnknown(ranks, result);
  }
  JudgeReplicas(ranks, step, "parameter", result);
  JudgeDropout(ranks, step, result);
  for (const char* phase : {"gradient", "updated", "state"}) JudgeReplicas(ranks, step, phase, result);
}

}  // namespace msprobe
