// What a weight of an engine holds instead of the trainer's: another tensor, its own rows in another order, an earlier
// step in part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "weights/causes/row_order.h"
#include "weights/checkpoint.h"
#include "weights/weight_diff.h"
#include "weights/weight_pair.h"

namespace msprobe {

struct WeightCause {
  std::string kind;  // "exchanged_rows", ...; "" where nothing explains it
  Message sentence;  // without the name of the weight
};

/// From the two sides of a pair alone.
WeightCause ExplainAlone(const WeightPair& pair, const WeightDiff& diff, int64_t head_dim);

/// Which rows of the engine's are the trainer's, and what the others are; `earlier` is the weight of an earlier step,
/// null without one, and `step` its name.
WeightCause ExplainPart(const WeightPair& pair, const ModelFacts& facts, const WeightTensor* earlier,
                        const Message& step);

/// A line on a pair that is no copy, with how much of it is equal.
Message EvidenceOf(const std::string& label, const WeightPair& pair, const WeightDiff& diff, const WeightCause& cause);

/// Whether the values lie on the few levels of a quantised type.
bool LooksQuantised(const WeightTensor& tensor);

/// The difference of a pair as a product of two small matrices: adapters that were merged.
bool IsMerged(const WeightPair& pair, const WeightTensor& lora_a, const WeightTensor& lora_b);

}  // namespace msprobe
