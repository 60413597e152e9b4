#include "diagnose/interim_result.h"

#include <algorithm>
#include <memory>
#include <new>
#include <vector>

#include "base/parallel.h"

namespace msprobe {
namespace {

// A dump of so few ops is compared in less time than it takes to read a line; values take longer than statistics.
constexpr size_t kFewOps = 4096, kFewOpsOfTensors = 256;
constexpr size_t kFewTries = 8;  // the second attempt is not before this part of the ops

}  // namespace

void InterimResult::Wait() {
  if (attempt_.joinable()) attempt_.join();
}

void InterimResult::Try(OpDistances known) {
  const StatusOr<Differences> found = FindDifferences(pair_, std::move(known));
  if (!found.ok()) return;
  // Small differences may turn out to add up; an op that stands out later would then be the answer.
  const FirstDifference& answer = found->Answer();
  if (answer.kind == FirstDifference::Kind::kNone || answer.kind == FirstDifference::Kind::kGrows ||
      answer.kind == FirstDifference::Kind::kDraw)
    return;
  told_ = true;
  tell_(answer);
}

void InterimResult::Seen(const OpDistances& so_far) {
  const size_t ops = pair_.target->ops().size();
  if (ops < (pair_.tensors ? kFewOpsOfTensors : kFewOps) || so_far.size() >= ops || so_far.size() < next_try_) return;
  while (looked_at_ < so_far.size() && !(so_far[looked_at_].input > 1) && !(so_far[looked_at_].output > 1))
    ++looked_at_;
  if (looked_at_ == so_far.size()) return;
  Wait();  // attempts are rare, and what is told shall not depend on how fast they are
  next_try_ = told_ ? ops : std::max(2 * so_far.size(), ops / kFewTries);
  if (told_) return;
  auto known = std::make_shared<OpDistances>(so_far);
  known->resize(ops);  // what is not known yet agrees
  const auto attempt = [this, known] {
    try {
      Try(std::move(*known));
    } catch (const std::bad_alloc&) {
      // The comparison itself will say so.
    }
  };
  std::vector<std::thread> started;
  if (ThreadCount() > 1) started = StartThreads(1, attempt);
  if (started.empty()) return attempt();
  attempt_ = std::move(started[0]);
}

}  // namespace msprobe
