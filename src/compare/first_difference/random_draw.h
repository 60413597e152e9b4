// Ops that give other results because the two runs drew other random numbers.
#pragma once

#include "compare/pair/dump_pair.h"

namespace msprobe {

/// Whether an op may draw some.
bool DrawsRandomly(std::string_view op_name);

/// Whether what differs in the op's results is no more than other random numbers explain: it draws some, is called
/// alike, and its results are as large as a draw makes them.
StatusOr<bool> IsOtherDraw(const DumpPair& pair, size_t op, uint32_t golden_op);

}  // namespace msprobe
