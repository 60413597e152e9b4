// Losses of ranks and of micro batches, which are means over a part of the rows.
#pragma once

#include <string>

#include "parity/part_compare.h"
#include "parity/parts.h"

namespace msprobe {

/// How many losses a rank has in this step: one for each micro batch.
size_t LossesOf(const ParityRun& run, int step);

/// Each rank's loss is that of its own rows: if their mean is that of the whole, or it lies among them, it is equal.
void AllowOwnRows(const RankParts& parts, const WholeValues& whole, PartsComparison* found);

/// All micro batches of a step as one loss: their mean against that of the reference, or their sum where each was
/// divided by their number.
struct MicroBatches {
  RankParts parts;
  WholeValues whole;
  PartsComparison found;
};
MicroBatches CompareMicroBatches(const ParityRun& ranks, const ParityRun& reference, const ParityRun& rounded,
                                 int step);

}  // namespace msprobe
