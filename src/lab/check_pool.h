// The processes that make calls again, kept from one dump to the next.
#pragma once

#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lab/check_process.h"

namespace msprobe {

/// Up to `most` processes; each works on a call at a time. Thread-safe.
class CheckPool {
 public:
  /// Takes turns on the devices.
  CheckPool(std::vector<std::string> devices, LabFramework framework, int most = 1)
      : devices_(std::move(devices)), framework_(framework), most_(most) {}

  /// Waits while all are taken.
  StatusOr<std::unique_ptr<CheckProcess>> Take();
  /// Null for one that is lost.
  void Give(std::unique_ptr<CheckProcess> process);

 private:
  std::vector<std::string> devices_;
  LabFramework framework_;
  int most_, taken_ = 0;
  std::mutex mutex_;
  std::condition_variable given_;
  std::vector<std::unique_ptr<CheckProcess>> free_;
  size_t next_ = 0;
};

}  // namespace msprobe
