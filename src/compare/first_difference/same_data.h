// Data that two runs cut into other pieces.
#pragma once

#include <string>

#include "compare/pair/dump_pair.h"

namespace msprobe {

/// Whether item `suffix` of all forward calls of `name` has as many elements in both runs, in another number of calls:
/// the same data in micro batches of another size.
StatusOr<bool> IsSameDataInPieces(const DumpPair& pair, std::string_view name, std::string_view suffix);

/// Whether the dump is of a run without a process group: its folder has no number.
bool IsOfOneProcess(const DumpFile& dump);

/// How many times as large as in the golden run the gradients of the parameters are, as far as most agree on it; 0
/// where they do not, or none are there. Of micro batches the last one counts: it holds what was added up.
StatusOr<double> FactorOfGradients(const DumpPair& pair);

}  // namespace msprobe
