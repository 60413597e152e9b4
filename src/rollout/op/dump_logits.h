// Logits of the responses of records, from the dump of the same side.
#pragma once

#include "base/status.h"
#include "rollout/evidence.h"

namespace msprobe {

/// Completes the records of a side by what its head or logits processor made in its dumps. Requests that have logits,
/// or whose tokens are not known among those of the dump, stay as they are.
Status TakeDumpLogits(RolloutSide side, SideEvidence* evidence);

}  // namespace msprobe
