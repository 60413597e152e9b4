// The processes that make calls again, kept from one dump to the next.
#pragma once

#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "lab/check_process.h"

namespace msprobe {

/// Processes that are free; each works on a call at a time. Thread-safe.
class CheckPool {
 public:
  /// Takes turns on the devices.
  CheckPool(std::vector<std::string> devices, LabFramework framework)
      : devices_(std::move(devices)), framework_(framework) {}

  StatusOr<std::unique_ptr<CheckProcess>> Take();
  void Give(std::unique_ptr<CheckProcess> process);

 private:
  std::vector<std::string> devices_;
  LabFramework framework_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<CheckProcess>> free_;
  size_t next_ = 0;
};

}  // namespace msprobe
