// The configurations that verl and slime print into their logs, compared.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct RlReport {
  std::vector<std::string> files;  // the table last
  size_t rows = 0, different = 0;
};

/// `config_check -vc`, `-sc`: NPU_config.json, bench_config.json and hyper_params_compare.csv in `output`.
StatusOr<RlReport> CompareVerlLogs(const std::string& npu_log, const std::string& bench_log, const std::string& output);
StatusOr<RlReport> CompareSlimeLogs(const std::string& npu_log, const std::string& bench_log,
                                    const std::string& output);

/// `config_check -vv`: the settings of `bench_yaml` ("": those on which the accuracy of training with verl depends
/// most) against a log: tgt_config.json and hyper_params_verify.csv.
StatusOr<RlReport> VerifyVerlLog(const std::string& bench_yaml, const std::string& log, const std::string& output);

}  // namespace msprobe
