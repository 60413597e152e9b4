// A request out of the parts of a record: without padding, and everything of the response in one length.
#pragma once

#include "rollout/evidence.h"
#include "rollout/records/record_parts.h"

namespace msprobe {

/// Adds to the padding and the notes of `records`, and not the request itself.
RolloutRequest RequestOf(const RecordParts& parts, RolloutSide side, RolloutRecords* records);

}  // namespace msprobe
