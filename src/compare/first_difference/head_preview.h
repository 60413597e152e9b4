// The start of two large dumps, compared before they are indexed: a first line for the user within a moment, whatever
// their size.
#pragma once

#include <string>

#include "base/message.h"
#include "match/path_plan.h"

namespace msprobe {

/// "1190 of the first 1204 ops agree; first difference: Functional.linear.7.forward"; by statistics or checksums, and
/// by name. Empty for dumps that are done in a moment anyway, and where nothing can be said.
Message HeadPreview(const FilePair& files);

}  // namespace msprobe
