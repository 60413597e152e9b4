// A small tensor that was saved beside a training, as numbers.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct StepTensor {
  std::vector<int64_t> shape;
  std::vector<double> values;  // in C order; whole numbers beyond 2^53 are rounded
};

/// Elements that are looked at of one file.
inline constexpr int64_t kMostStepElements = int64_t{1} << 26;

/// The tensors of a file by their names; "" is that of a file of one. kBadInput for what is no file of tensors, and for
/// one that is larger.
StatusOr<std::map<std::string, StepTensor>> ReadStepTensors(const std::string& path);

}  // namespace msprobe
