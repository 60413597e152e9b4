// The process that makes calls again (python/msprobe/_lab.py, of MindSpore
// _lab_mindspore.py): started when it is needed, and again after a call that
// ended it.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/python_process.h"
#include "base/python_program.h"
#include "json/value.h"
#include "lab/check_tables.h"
#include "lab/shared_bytes.h"

namespace msprobe {

/// The modules of a process that makes calls of PyTorch again.
ProgramModules CallModules();

/// A result on both sides.
struct ResultItem {
  enum class Kind : uint8_t { kTensor, kValue, kNone, kApart };
  Kind kind = Kind::kNone;
  std::string dtype;  // "torch.float32", "<class 'int'>"
  std::vector<int64_t> shape, truth_shape;
  // Bytes of a tensor, which the answer keeps; the truth of floats is float64, that of others has their type.
  std::string_view ours, truth;
  bool same = false;  // of a value
  // How far the result is from the truth and how far rounding explains, in ulp; -1 where nothing says it.
  double error = -1, limit = -1;
  // Of each element: `ulps` of its own value and, where `bound` is there (float32 each), a distance of its own.
  std::string rule;                            // what the bound comes from, as python/msprobe/_element.py lists them
  double ulps = -1, terms = 1, condition = 1;  // -1: was not needed
  std::string_view bound;
  std::string_view low;  // float64 each: what the truth lacks in float64, where float64 is the dtype
  std::string unknown;   // why there is no truth
  std::string known;     // which step of the call is at fault, whatever its kernels are like
};

/// A random result: how far the distributions are apart.
struct DrawnResult {
  Float64Verdict verdict = Float64Verdict::kRight;
  double distance = 0, limit = 0;
  int64_t values = 0;
};

struct CallAnswer {
  std::vector<ResultItem> forward, backward;
  std::string note;  // why there is no backward
  std::string why;   // why there is nothing
  std::optional<DrawnResult> draws;
  // Where the bytes of the items are.
  std::unique_ptr<SharedBytes::Part> shared;
  std::deque<std::string> received;
};

enum class LabFramework : uint8_t { kTorch, kMindSpore };

class AnswerBytes;

class CheckProcess {
 public:
  /// kUsage when there is no Python with the framework, or no such device.
  static StatusOr<std::unique_ptr<CheckProcess>> Start(const std::string& device, LabFramework framework);
  /// `device` as the process names it, for what is told.
  const std::string& device() const { return name_; }

  /// An answer without results has a `why`, also when the call ended the process.
  StatusOr<CallAnswer> Call(const std::string& request);
  /// Writes the tensors of the last call to `folder`; their names begin with `full`.
  Status Save(const std::string& folder, const std::string& full);

 private:
  CheckProcess(std::string device, LabFramework framework) : device_(std::move(device)), framework_(framework) {}
  Status Begin();
  StatusOr<CallAnswer> Read(const std::string& line, std::unique_ptr<SharedBytes::Part> part);
  Status ReadItems(const JsonValue* items, AnswerBytes* bytes, std::vector<ResultItem>* out);

  std::string device_, name_;
  LabFramework framework_;
  std::shared_ptr<SharedBytes> shared_;     // null where there is none
  std::unique_ptr<PythonProcess> process_;  // null after it ended
  int restarts_ = 0;
};

}  // namespace msprobe
