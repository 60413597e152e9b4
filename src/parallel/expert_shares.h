// Which ranks hold the same experts, where no recorded call tells it.
#pragma once

#include "parallel/merge_pool.h"

namespace msprobe {

/// By the weights of experts: ranks that hold the same ones have equal statistics of them, parts of one expert do not.
Status PlaceSharesByWeights(MergePool* pool);

/// kBadInput where experts are cut into another number of parts than 1 or the tensor parallel size, by their weights.
Status CheckExpertParts(const MergePool& pool);

}  // namespace msprobe
