// Which rank gave what another one received, where no communication was recorded.
#pragma once

#include <vector>

#include "diagnose/divergence.h"

namespace msprobe {

/// A rank of `ranks` by its position, and where its difference comes in from outside of what it recorded.
struct Receiver {
  size_t rank = 0;
  const FirstDifference* difference = nullptr;
};

/// For each of `receivers` the position of the rank of which a module gave the same value; SIZE_MAX where none did. The
/// value is one that this rank made, or passed on, behind its own difference. Two ranks that each have what the other
/// one gives are copies, and neither received it.
StatusOr<std::vector<size_t>> GiversOfValues(const std::vector<RankFindings>& ranks,
                                             const std::vector<Receiver>& receivers);

}  // namespace msprobe
