#include "parity/carried.h"

#include <algorithm>
#include <cmath>
#include <utility>

namespace msprobe {
namespace {

constexpr double kSlack = 1 + 1e-6;  // of the same sum in another order

double Distance(const std::vector<double>& a, const std::vector<double>& b) {
  double squares = 0;
  for (size_t e = 0; e < a.size() && e < b.size(); ++e) squares += (a[e] - b[e]) * (a[e] - b[e]);
  return std::sqrt(squares);
}

}  // namespace

void CarriedDoubt::Keep(const std::string& name, const RankParts& after, const WholeValues& whole,
                        const RankMapping& mapping) {
  double most = 0;  // relative, of a part
  for (size_t i = 0; i < after.size(); ++i) {
    const std::vector<double> expected = Taken(whole.values, whole.shape, mapping.places[i]);
    if (expected.size() != after.values[i].size()) return;
    const double distance = Distance(after.values[i], expected), squares = SumOfSquares(expected);
    next_.of[name][after.ranks[i]->rank] = distance;
    if (squares > 0) most = std::max(most, distance * distance / squares);
  }
  if (whole.rounded.empty()) return;
  const double moved = Distance(whole.rounded, whole.values);
  next_.squares += most * SumOfSquares(whole.values), next_.rounded += moved * moved;
}

void CarriedDoubt::Next() { now_ = std::exchange(next_, {}); }

void CarriedDoubt::Allow(const std::string& name, const RankParts& before, PartsComparison* found) const {
  const auto known = now_.of.find(name);
  if (known == now_.of.end()) return;
  for (size_t i = 0; i < before.size() && i < found->bounds.size(); ++i) {
    const auto own = known->second.find(before.ranks[i]->rank);
    if (own == known->second.end() || own->second == 0) continue;
    const double size = std::sqrt(SumOfSquares(found->expected[i]));
    found->bounds[i] = std::max(found->bounds[i], kSlack * own->second / size);
  }
  if (found->kind == PartsKind::kDiffers && found->bad().empty()) found->kind = PartsKind::kEqual;
}

double CarriedDoubt::stretch() const {
  return now_.rounded > 0 ? std::max(1.0, std::sqrt(now_.squares / now_.rounded)) : 1;
}

}  // namespace msprobe
