// How the ids of a request differ between two sides.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "base/message.h"
#include "rollout/evidence.h"

namespace msprobe {

struct SequenceDifference {
  std::string kind;  // "padding_attended", "truncated", "retokenised", ...; "" where the ids are equal
  Message sentence;
  int64_t position = -1;
};

/// `padding`: ids that are known to fill rows.
SequenceDifference CompareSequences(const RolloutRequest& train, const RolloutRequest& rollout,
                                    const std::set<int64_t>& padding);

}  // namespace msprobe
