// Metrics that the user wrote in Python: a process of the environment's Python runs them, fed with the elements of both
// tensors over a socket.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/status.h"
#include "compare/stat_value.h"
#include "tensor/stats.h"

namespace msprobe {

class CustomMetrics {
 public:
  /// `path` is a file with column_name() and compare(n_tensor, b_tensor), or a directory of files alg_*.py. Runs the
  /// Python of $MSPROBE_PYTHON, else the one beside the command, else python3. kUsage when a file is not such a metric.
  static StatusOr<std::unique_ptr<CustomMetrics>> Start(const std::string& path);
  CustomMetrics(const CustomMetrics&) = delete;
  CustomMetrics& operator=(const CustomMetrics&) = delete;
  ~CustomMetrics();

  const std::vector<std::string>& columns() const { return columns_; }
  /// A cell for each column; "unsupported" where the function failed, and `error` then says why. May be called by
  /// several threads.
  Status Measure(const TensorView& target, const TensorView& golden, std::vector<StatValue>* cells, std::string* error);

 private:
  CustomMetrics() = default;
  Status Spawn(const std::vector<std::string>& files);
  Status ReadColumns();
  Status Send(const void* data, size_t bytes);
  Status SendTensor(const TensorView& tensor);
  StatusOr<std::string> ReadLine();
  Status Ended() const;

  std::mutex mutex_;  // one question at a time
  std::vector<std::string> columns_;
  int socket_ = -1;
  pid_t pid_ = -1;
  std::string buffer_;  // bytes behind the last line
};

}  // namespace msprobe
