// Which findings the ones before them cannot cause.
#pragma once

#include "parity/result.h"

namespace msprobe {

/// Sets `apart` of each finding that is a fault of its own; the first one is, and is not marked.
void MarkApart(ParityResult* result);

}  // namespace msprobe
