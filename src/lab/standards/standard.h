// The standards by which mindstudio-probe judges an op: their limits, and which op is judged by which.
#pragma once

#include <cstdint>
#include <string_view>

#include "tensor/kernels/dtype.h"

namespace msprobe {

enum class Standard : uint8_t {
  kBenchmark,     // errors against those of another device
  kAbsolute,      // limits of absolute and relative errors
  kBinary,        // equal elements
  kUlp,           // distances in units of the last place
  kThousandth,    // the share of elements with relative errors below 0.001
  kAccumulative,  // limits of errors and of their balance
};

/// The release whose choice counts. 26.2 judges every floating output by kBenchmark; 8.1 chooses by the op's name.
enum class StandardRelease : uint8_t { k26, k8 };

/// Limits of a dtype; those of float32 for every dtype that has none.
struct StandardLimits {
  double small_value;            // magnitudes up to this are judged by absolute errors
  double small_value_absolute;   // of kAbsolute
  double small_value_benchmark;  // of kBenchmark
  double relative;               // of kAbsolute
  double accumulative;           // of kAccumulative
  double balance;                // the same, of the balance of errors
  double smallest_error;         // of the other device, in ratios
};
const StandardLimits& LimitsOf(DType dtype);
inline constexpr double kAccumulativeSmallValue = 1;

/// Of ratios against another device, by the level of the op (26.2).
struct RatioLimits {
  double small_value, rmse, max_relative, mean_relative, balance;
};
const RatioLimits& RatioLimitsOf(std::string_view api, StandardRelease release);

inline bool IsFloat8(DType t) { return t == DType::kFloat8E4M3FN || t == DType::kFloat8E5M2; }

/// `api` as "matmul" or "linalg.inv". `float8_input`: one of the inputs is float8.
Standard StandardOf(std::string_view api, DType output, bool float8_input, StandardRelease release);

}  // namespace msprobe
