// Which weight of one checkpoint is which of another.
#pragma once

#include "weights/checkpoint.h"
#include "weights/map_file.h"

namespace msprobe {

/// What `to` does not say is taken from `from`.
void FillFacts(ModelFacts* to, const ModelFacts& from);

/// Facts that one checkpoint lacks are taken from the other. Without `values` only names, shapes and what checkpoints
/// say of themselves count. kBadInput where `file` names what is not there.
StatusOr<NameMap> MatchWeights(Checkpoint* a, Checkpoint* b, const MapFile* file, bool values = true);

/// MindSpore's BatchNorm counts no batches, so a count that only the other side has is a note.
void LeaveOutCounts(const Checkpoint& a, const Checkpoint& b, NameMap* map);

}  // namespace msprobe
