// The process that makes calls again under relations (python/msprobe/_relations.py): started when it is needed, and
// again after a call that ended it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "base/python_process.h"
#include "json/value.h"
#include "lab/relations/ulp_distance.h"

namespace msprobe {

/// One relation of one call. With a `why` it says nothing of the function.
struct RelationCell {
  size_t relation = 0;
  std::string why, detail;  // which dimensions of the inputs were changed, which dtype, which threads
  bool apart = false;       // the call has nothing of what the relation changes
  UlpDistance distance;
};

struct RelationAnswer {
  std::string why;  // why there is nothing
  std::string dtype;
  std::vector<int64_t> shape;  // of the first result
  std::vector<RelationCell> cells;
};

class RelationProcess {
 public:
  /// kUsage when there is no Python with torch, or no such device.
  static StatusOr<std::unique_ptr<RelationProcess>> Start(const std::string& device);
  /// As the process names them, for what is told.
  const std::string& device() const { return name_; }
  const std::string& torch() const { return torch_; }
  int64_t threads() const { return threads_; }

  /// An answer without cells has a `why`, also when the call ended the process.
  StatusOr<RelationAnswer> Ask(const std::string& request);

 private:
  explicit RelationProcess(std::string device) : device_(std::move(device)) {}
  Status Begin();
  StatusOr<RelationAnswer> Read(const std::string& line);
  Status ReadPairs(const JsonValue& pairs, RelationCell* cell);

  std::string device_, name_, torch_;
  int64_t threads_ = 0;
  std::unique_ptr<PythonProcess> process_;  // null after it ended
  int restarts_ = 0;
};

}  // namespace msprobe
