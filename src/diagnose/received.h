// Which rank gave what another one received, where no communication was recorded.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "compare/describe/differences.h"

namespace msprobe {

/// What a rank says of its values.
struct RankValues {
  std::string dump;                          // of the target
  const FirstDifference* answer = nullptr;   // where its difference begins; kNone without one
  const BigArray<uint8_t>* marks = nullptr;  // for each op
  uint8_t ends_apart = 0;                    // bit of `marks`: what comes out differs
  bool asks = false;                         // its difference comes in from outside of what it recorded
};

/// For each rank that asks the position of the one of which a module gave the same value; SIZE_MAX where none did. The
/// value is one that this rank made, or passed on, behind its own difference. Two ranks that each have what the other
/// one gives are copies, and neither received it.
StatusOr<std::vector<size_t>> GiversOfValues(const std::vector<RankValues>& ranks);

}  // namespace msprobe
