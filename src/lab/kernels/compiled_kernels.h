// The kernels that Inductor generates for a model of the user's, each judged beside eager and float64.
#pragma once

#include <string>
#include <vector>

#include "base/status.h"

namespace msprobe {

struct CompiledSettings {
  std::string file, function;  // which returns what is compiled, and its arguments
  bool backward = true;
  std::string repro_dir;  // "" for no scripts
};

/// One result of one kernel, as python/msprobe/pytorch/compile_accuracy_checker/kernels.py has it.
struct CompiledKernel {
  int64_t graph = 0;
  std::string direction, kernel, buffer, node, verdict, note, blamed, repro;
  std::vector<std::string> nodes, lines;
  double compiled = 0, eager = 0;  // multiples of what rounding explains
  bool wrong() const { return verdict == "compiled wrong"; }
  /// The backward pass computes a value of the forward pass once more, and gets another.
  bool recomputed_differently() const {
    return note.find("recomputed: ") != std::string::npos &&
           note.find("differ from the forward pass") != std::string::npos;
  }
};

struct CompiledReport {
  std::string torch;  // its version
  std::vector<CompiledKernel> kernels;
};

/// Runs the Python of the environment. kUsage when it lacks what is needed, kBadInput for a file that does not run.
StatusOr<CompiledReport> CheckKernels(const CompiledSettings& settings);

}  // namespace msprobe
