// What two dumps and the settings of a graph must have in common.
#pragma once

#include <msprobe/graph.h>

#include "base/status.h"
#include "compare/values/item_view.h"
#include "compare/values/tensor_pairs.h"
#include "dump/reader.h"
#include "match/implementations.h"

namespace msprobe {

/// By which kind of data two dumps are compared; kBadInput when they are not of the same.
StatusOr<CompareMode> ModeOf(const DumpFile& dump, const DumpFile& other);
/// Whether two dumps are of different frameworks or implementations; `mapped`: a layer mapping is given; `tensors` (may
/// be null) is told. kBadInput for a framework that is
/// not known.
StatusOr<Kinship> KinshipOf(const DumpFile& a, const DumpFile& b, bool mapped, TensorPairs* tensors);
/// kUsage for options of a merge that do not go together.
Status CheckMergeOptions(const GraphSettings& settings);

}  // namespace msprobe
