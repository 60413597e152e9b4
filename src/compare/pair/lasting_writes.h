// What a step writes for later steps to read: a buffer of a module, an average, a count.
#pragma once

#include <vector>

#include "compare/pair/dump_pair.h"

namespace msprobe {

/// For each op whether all that is made of its results is written in place into tensors that no op of this step made
/// and none takes in behind the write: then neither a loss nor a gradient of this step tells whether they are right.
/// All false in dumps without such writes.
StatusOr<std::vector<bool>> OpsOfLastingWrites(const DumpFile& dump, CompareMode mode);

/// Whether an op and its partner are given the same tensors and numbers, in whatever order.
StatusOr<bool> AreGivenTheSame(const DumpPair& pair, size_t op, uint32_t partner);

}  // namespace msprobe
