// What `msprobe acc_check` does: the calls of a dump made again on a device and in float64, into two tables.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "lab/check_tables.h"
#include "lab/standards/standard.h"

namespace msprobe {

class CheckPool;

/// In place of a device: no call is made again, the results of the dump are judged.
inline constexpr std::string_view kRecordedDevice = "recorded";

struct AccCheckSettings {
  std::string dump;  // a dump.json
  std::string output = "./output";
  std::vector<std::string> devices = {"0"};  // numbers of accelerators, or names of torch: "cpu", "cuda:1"
  std::string resume;                        // an accuracy_checking_result_{time}.csv
  std::string config;                        // a config.json with white_list, black_list, error_data_path
  bool save_error_data = false;
  bool once = false;  // of calls with the same shapes and settings only the first
  bool jit = false;   // of an NPU; has no effect
  int processes = 1;
  StandardRelease release = StandardRelease::k26;
};

struct WorstCall {
  std::string full;
  Float64Verdict verdict = Float64Verdict::kRight;
  double times = 0;  // its error, in multiples of what rounding explains
};

struct AccCheckReport {
  std::string result, details, float64, error_data;  // files; the directory of saved tensors, "" without one
  std::string device;
  uint64_t passed = 0, warned = 0, failed = 0, skipped = 0, resumed = 0;  // calls
  std::vector<std::string> errors;                                        // names of calls that fail, at most 100
  std::array<uint64_t, 4> verdicts{};                                     // calls by Float64Verdict
  std::vector<std::string> suspects;                                      // wrong before suspicious, at most 100
  std::vector<WorstCall> worst;                                           // at most 20, the worst first
  uint64_t known = 0;                                                     // suspects whose kernels are known
  Message truncated;                                                      // where the dump ends before its end
};

/// `pool`: of the devices of the settings, for several dumps; null for one of its own.
StatusOr<AccCheckReport> CheckAccuracy(const AccCheckSettings& settings, const std::function<void(double)>& progress,
                                       CheckPool* pool = nullptr);

}  // namespace msprobe
