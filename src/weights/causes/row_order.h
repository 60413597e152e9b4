// How rows of one tensor lie in another.
#pragma once

#include "base/message.h"
#include "weights/causes/weight_rows.h"

namespace msprobe {

/// How rows of `to` are those of `from`: "its halves are exchanged". Empty where they are not the same rows.
Message OrderOf(const WeightRows& from, const WeightRows& to, int64_t head_dim);

}  // namespace msprobe
