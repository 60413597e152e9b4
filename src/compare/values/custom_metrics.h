// Metrics that the user wrote in Python: a process of the environment's Python runs them, fed with the elements of both
// tensors over a socket.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "base/python_process.h"
#include "base/status.h"
#include "compare/values/tensor_diff.h"
#include "tensor/kernels/stats.h"

namespace msprobe {

class CustomMetrics {
 public:
  /// `path` is a file with column_name() and compare(n_tensor, b_tensor), or a directory of files alg_*.py. Runs the
  /// Python of $MSPROBE_PYTHON, else the one beside the command, else python3. kUsage when a file is not such a metric.
  static StatusOr<std::unique_ptr<CustomMetrics>> Start(const std::string& path);
  CustomMetrics(const CustomMetrics&) = delete;
  CustomMetrics& operator=(const CustomMetrics&) = delete;

  const std::vector<std::string>& columns() const { return columns_; }
  /// A cell for each column; "unsupported" where the function failed, and `error` then says why. May be called by
  /// several threads.
  Status Measure(const TensorView& target, const TensorView& golden, std::vector<CustomCell>* cells,
                 std::string* error);

 private:
  CustomMetrics() = default;
  Status ReadColumns();
  Status SendTensor(const TensorView& tensor);

  std::mutex mutex_;  // one question at a time
  std::vector<std::string> columns_;
  std::unique_ptr<PythonProcess> process_;
};

}  // namespace msprobe
