#include "parity/all_gradients.h"

#include <cmath>
#include <set>

#include "parity/parts.h"

namespace msprobe {
namespace {

constexpr double kAgree = 0.05;   // of what a factor is away from 1
constexpr double kScaled = 1e-3;  // as far from 1 is a factor that is none by chance
constexpr size_t kLeast = 3;      // gradients that have a factor in common

/// By what the reference multiplies what its backward pass gives, of all parameters alike.
std::optional<double> ScaledBehindBackward(const ParityRun& reference, int step) {
  std::optional<double> common;
  size_t seen = 0;
  for (const ParityEntry& entry : reference.front().phase(step, "gradient").entries) {
    const ParityEntry* local = reference.front().phase(step, "local").Find(entry.name);
    if (local == nullptr) continue;
    const auto factor = FactorBetween(ElementsOf(entry), ElementsOf(*local), kScaled);
    if (!factor) continue;  // nothing but zeros
    if (common && std::abs(*factor / *common - 1) > kScaled) return std::nullopt;
    common = factor;
    ++seen;
  }
  return seen >= kLeast ? common : std::nullopt;
}

}  // namespace

std::optional<double> FactorOfAll(const std::vector<WrongGradient>& wrong, size_t compared) {
  if (wrong.size() < kLeast || wrong.size() * 10 < compared * 9) return std::nullopt;
  std::optional<double> common;
  for (const WrongGradient& one : wrong) {
    for (size_t i = 0; i < one.parts.size(); ++i) {
      if (one.parts.entries[i]->valid) return std::nullopt;
      if (SumOfSquares(one.found.expected[i]) == 0 && SumOfSquares(one.parts.values[i]) == 0) continue;
      const auto factor = FactorBetween(one.parts.values[i], one.found.expected[i], 4 * one.found.bounds[i]);
      if (!factor || (common && std::abs(*factor - *common) > kAgree * std::abs(*common - 1))) return std::nullopt;
      if (!common) common = factor;
    }
  }
  return common;
}

std::optional<ParityCause> ExplainClip(double factor, const std::vector<WrongGradient>& wrong,
                                       const ParityRun& reference, int step) {
  const auto golden = ScaledBehindBackward(reference, step);
  if (!golden || std::abs(*golden - 1) <= kScaled) return std::nullopt;
  std::set<int> ranks;
  for (const WrongGradient& one : wrong) {
    for (const ParityRank* rank : one.parts.ranks) ranks.insert(rank->rank);
  }
  ParityCause cause;
  cause.kind = CauseKind::kNorm, cause.factor = factor, cause.ranks = {ranks.begin(), ranks.end()};
  cause.text =
      Msg("all {} gradients have one factor, {:.6g}: behind backward the reference scales them by {:.6g} and the "
          "ranks by {:.6g}, as clipping by a norm that is {:.6g} times as large does",
          wrong.size(), factor, *golden, *golden * factor, 1 / factor);
  return cause;
}

}  // namespace msprobe
