// Training against inference: the rows of one training op and of what the inference engine has for it.
#pragma once

#include "compare/pair/dump_pair.h"

namespace msprobe {

/// Rows of op `index` of the target under a plan with `fused`: joined items where several ops stand against one, then,
/// as rows of their own, golden items that have no partner. An op whose items others of its group show has no rows.
Status DiffFusedOp(const DumpPair& pair, size_t index, OpDiff* out);

}  // namespace msprobe
