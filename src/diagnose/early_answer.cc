#include "diagnose/early_answer.h"

namespace msprobe {
namespace {

// A dump of so few ops is compared in less time than it takes to read a line; values take longer than statistics.
constexpr size_t kFewOps = 4096, kFewOpsOfTensors = 256;

}  // namespace

void EarlyAnswer::Seen(const OpDistances& so_far) {
  const size_t ops = pair_.target->ops().size();
  if (told_ || ops < (pair_.tensors ? kFewOpsOfTensors : kFewOps) || so_far.size() >= ops || so_far.size() < next_try_)
    return;
  while (looked_at_ < so_far.size() && !(so_far[looked_at_].input > 1) && !(so_far[looked_at_].output > 1))
    ++looked_at_;
  if (looked_at_ == so_far.size()) return;
  OpDistances known = so_far;
  known.resize(ops);  // what is not known yet agrees
  const StatusOr<Differences> found = FindDifferences(pair_, std::move(known));
  // Small differences may turn out to add up; an op that stands out later would then be the answer.
  const bool clear = found.ok() && found->Answer().kind != FirstDifference::Kind::kNone &&
                     found->Answer().kind != FirstDifference::Kind::kGrows;
  next_try_ = 2 * so_far.size();
  if (!clear) return;
  told_ = true;
  tell_(found->Answer());
}

}  // namespace msprobe
