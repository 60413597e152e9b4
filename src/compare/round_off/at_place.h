// Items that stand in one place of an op and are of different kinds, so that they are no partners.
#pragma once

#include "compare/values/op_diff.h"

namespace msprobe {

/// What the golden run has in the place of `item`, of whatever kind: 1 is no partner of 1.5, and a tensor none of None.
inline const ItemView* AtPlaceOf(const OpDiff& op, const ItemView& item) {
  for (size_t g = 0; g < op.golden_used; ++g) {
    if (op.golden[g].suffix == item.suffix) return &op.golden[g];
  }
  return nullptr;
}

}  // namespace msprobe
