// Layers of one framework that the other computes as one: query, key and value, or gate and up.
#pragma once

#include "compare/values/op_diff.h"
#include "dump/reader.h"
#include "match/match_plan.h"

namespace msprobe {

/// Where the items of linked ops are read, and what of them.
struct LinkedDumps {
  const DumpFile& target;
  const DumpFile& golden;
  CompareMode mode = CompareMode::kStatistics;
};

/// Puts both sides of op `index` of the target into `out`; `links` joins it with others of its side, or it stands
/// against several ops of the golden run: outputs beside each other, parameters and their gradients below each other,
/// as one tensor.
Status DescribeJoined(const LinkedDumps& of, size_t index, const OpLinks& links, OpDiff* out);

}  // namespace msprobe
