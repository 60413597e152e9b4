// One step on N ranks against the same step of a reference: the first tensor in the order of computation that is not
// equal.
#pragma once

#include "parity/parts.h"
#include "parity/record.h"
#include "parity/result.h"

namespace msprobe {

struct ParityRuns {
  ParityRun ranks;
  ParityRun reference, rounded;  // empty: laws within the run of the ranks only
};

ParityResult JudgeParity(const ParityRuns& runs);

/// Adds what is wrong with the norm of the gradients, and with what was clipped by it.
void JudgeNorm(const ParityRuns& runs, int step, ParityResult* result);

/// Adds what no reference is needed for: replicas are equal, bit by bit, shards are not, and what is dropped differs
/// where values do. Without a reference, what nothing is known of is listed.
void JudgeLaws(const ParityRuns& runs, int step, ParityResult* result);

}  // namespace msprobe
