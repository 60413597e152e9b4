// One op of the target compared with what the plan puts against it.
#pragma once

#include "compare/pair/dump_pair.h"
#include "compare/pair/joined_op.h"

namespace msprobe {

/// Puts the golden items that `links` names into `out`, under the suffixes of the target's items.
Status GatherPartners(const LinkedDumps& of, const OpLinks& links, OpDiff* out);

/// Compares op `index` of the target with its partner, or item by item with several. `out` holds views into the two
/// documents.
Status DiffOpAt(const DumpPair& pair, size_t index, JsonDoc* target, JsonDoc* golden, OpDiff* out);

/// The same with `partner`, which need not be the plan's; kNoOp is the plan's.
Status DiffOpWith(const DumpPair& pair, size_t index, uint32_t partner, JsonDoc* target, JsonDoc* golden, OpDiff* out);

}  // namespace msprobe
