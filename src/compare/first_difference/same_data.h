// Data that two runs cut into other pieces.
#pragma once

#include <string>

#include "compare/pair/dump_pair.h"

namespace msprobe {

/// Whether item `suffix` of all forward calls of `name` has as many elements in both runs, in another number of calls:
/// the same data in micro batches of another size.
StatusOr<bool> IsSameDataInPieces(const DumpPair& pair, std::string_view name, std::string_view suffix);

}  // namespace msprobe
