// How far a communication call is apart, by what this rank gives and what it takes.
#pragma once

#include "compare/first_difference/first_difference.h"
#include "diagnose/communication.h"

namespace msprobe {

/// Judges the communication calls of a pair anew. In a dump every buffer of a call looks like an input, and every
/// argument like an output. But memory that a receive will fill holds no value yet, and what a rank only sends is no
/// result: those must not count as differences.
Status JudgeCalls(const DumpPair& pair, const RankCalls& calls, OpDistances* distances);

}  // namespace msprobe
