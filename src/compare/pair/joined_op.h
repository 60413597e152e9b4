// Layers of one framework that the other computes as one: query, key and value, or gate and up.
#pragma once

#include "compare/pair/dump_pair.h"

namespace msprobe {

/// Rows of op `index` of the target, which `links` joins with others of its side, or which stands against several ops
/// of the golden run: outputs beside each other, parameters and their gradients below each other, as one tensor.
Status DiffJoinedOp(const DumpPair& pair, size_t index, const OpLinks& links, OpDiff* out);

}  // namespace msprobe
