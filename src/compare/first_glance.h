// The start of two large dumps, compared before they are indexed: a first line for the user within a moment, whatever
// their size.
#pragma once

#include <string>

#include "match/path_plan.h"

namespace msprobe {

/// "of the first 1204 ops 1190 agree, first to differ is Functional.linear.7.forward"; by statistics or checksums, and
/// by name. Empty for dumps that are done in a moment anyway, and where nothing can be said.
std::string FirstGlance(const FilePair& files);

}  // namespace msprobe
