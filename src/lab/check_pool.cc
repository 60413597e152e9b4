#include "lab/check_pool.h"

namespace msprobe {

StatusOr<std::unique_ptr<CheckProcess>> CheckPool::Take() {
  std::string device;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      std::unique_ptr<CheckProcess> out = std::move(free_.back());
      free_.pop_back();
      return out;
    }
    device = devices_[next_++ % devices_.size()];
  }
  return CheckProcess::Start(device, framework_);
}

void CheckPool::Give(std::unique_ptr<CheckProcess> process) {
  const std::lock_guard lock(mutex_);
  free_.push_back(std::move(process));
}

}  // namespace msprobe
