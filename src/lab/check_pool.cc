#include "lab/check_pool.h"

namespace msprobe {

StatusOr<std::unique_ptr<CheckProcess>> CheckPool::Take() {
  std::string device;
  {
    std::unique_lock lock(mutex_);
    given_.wait(lock, [this] { return taken_ < most_; });
    ++taken_;
    if (!free_.empty()) {
      std::unique_ptr<CheckProcess> out = std::move(free_.back());
      free_.pop_back();
      return out;
    }
    device = devices_[next_++ % devices_.size()];
  }
  StatusOr<std::unique_ptr<CheckProcess>> out = CheckProcess::Start(device, framework_);
  if (!out.ok()) Give(nullptr);
  return out;
}

void CheckPool::Give(std::unique_ptr<CheckProcess> process) {
  {
    const std::lock_guard lock(mutex_);
    --taken_;
    if (process) free_.push_back(std::move(process));
  }
  given_.notify_one();
}

}  // namespace msprobe
