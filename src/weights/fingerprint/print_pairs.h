// Which weight of one fingerprint is which of another.
#pragma once

#include "weights/fingerprint/whole_prints.h"

namespace msprobe {

struct PrintPair {
  const WholePrint* a = nullptr;  // null where a side has none
  const WholePrint* b = nullptr;
  bool tied = false;  // one side has no head of its own: the table of words stands for it
};

/// In the order of A, then what only B has. Fused weights that one side could not cut are cut as the other side's are.
std::vector<PrintPair> PairPrints(WholeModel* a, WholeModel* b);

}  // namespace msprobe
