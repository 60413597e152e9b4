// One factor that all gradients have is no fault of one parameter.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parity/cause.h"

namespace msprobe {

/// A gradient that is not that of the reference.
struct WrongGradient {
  std::string name;
  RankParts parts;
  PartsComparison found;
};

/// The factor that all of these have; nothing where they are not nearly all that were compared.
std::optional<double> FactorOfAll(const std::vector<WrongGradient>& wrong, size_t compared);

/// What a factor that is no size of an axis comes from, where the reference shows that the script scales gradients
/// behind its backward pass: a norm by which it clips.
std::optional<ParityCause> ExplainClip(double factor, const std::vector<WrongGradient>& wrong,
                                       const ParityRun& reference, int step);

}  // namespace msprobe
