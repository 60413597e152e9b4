// What one recorded call loses in formats of few bits.
#pragma once

#include <vector>

#include "base/message.h"
#include "base/status.h"
#include "lowp/matrix_op.h"
#include "lowp/matrix_product.h"

namespace msprobe {

/// Elements of an operand that are held as float32 at a time; of a larger one a sample of its rows.
inline constexpr int64_t kMostHeld = int64_t{1} << 25;

/// A channel of an input, one place in its sums, whose magnitude stands out.
struct OutlierChannels {
  int64_t count = 0;    // larger than 20 times the median channel
  int64_t largest = 0;  // the channel
  double times = 0;     // how many times the median it is
};

struct OpLosses {
  std::vector<OpLoss> by_plan;
  OutlierChannels outliers;
  double work = 0;  // multiplications of the call
  bool sampled = false;
  Message not_measured;  // why the result is not there; empty: it is
};

StatusOr<OpLosses> LossesOf(const MatrixOp& op, const std::vector<MatrixPlan>& plans);

}  // namespace msprobe
