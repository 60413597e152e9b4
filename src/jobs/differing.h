// `msprobe compare --rows differing`: the answer first, then one table for all ranks, and a line for each of them.
#pragma once

#include "jobs/pair_job.h"

namespace msprobe {

/// kUsage for options that need a table for each rank.
Status CheckDiffering(const CompareSettings& request);

/// Fills the pairs, the failures, the story and the two tables of `report`.
Status CompareDiffering(PairWork* work, CompareReport* report);

/// Only tells the answer, before the tables of many pairs are written.
Status TellAnswer(PairWork& work);

}  // namespace msprobe
