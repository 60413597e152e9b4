#include "report/ordered_progress.h"

#include <utility>

namespace msprobe {

void OrderedProgress::Progress(size_t pair, double share) {
  if (!settings_.progress) return;
  std::lock_guard lock(mutex_);
  if (pair == running_) settings_.progress(pairs_[pair].label, share);
}

void OrderedProgress::Early(size_t pair, Message difference) {
  std::lock_guard lock(mutex_);
  pending_[pair].said = true;
  pending_[pair].waiting = std::move(difference);
  Pass();
}

void OrderedProgress::Preview(size_t pair, const Message& line) {
  std::lock_guard lock(mutex_);
  settings_.glance(pairs_[pair].label, line);
}

void OrderedProgress::Ended(size_t pair) {
  std::lock_guard lock(mutex_);
  pending_[pair].ended = true;
  while (running_ < pending_.size() && pending_[running_].ended) ++running_;
  Pass();
}

void OrderedProgress::Pass() {
  for (; silent_ < pending_.size(); ++silent_) {
    Pending& own = pending_[silent_];
    if (!own.said && !own.ended) return;
    if (own.said) settings_.early(pairs_[silent_].label, own.waiting);
    own.waiting = {};
  }
}

}  // namespace msprobe
