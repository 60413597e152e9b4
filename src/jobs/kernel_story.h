// Where the difference of two kernel dumps begins: their tensors as ops, judged as all others.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "diagnose/divergence.h"
#include "json/writer.h"

namespace msprobe {

struct KernelFigures {
  std::string dtype;
  std::vector<int64_t> shape;
  std::array<std::optional<double>, kStatCount> stats;
  std::string checksum;  // "" where it is not compared
};

/// As dump.json has a tensor.
void WriteFigures(const KernelFigures& figures, JsonWriter* json);

/// A tensor of one run of a kernel that both sides have.
struct KernelFinding {
  std::string kernel;  // "{op name}.{task}"
  std::string graph;
  uint32_t place = 0;  // of the run among those of the target's step
  bool output = false;
  uint32_t slot = 0;
  KernelFigures target, golden;
  double error = -1, golden_error = -1;  // of the values, as TensorDiff has them; -1: statistics only
};

/// What one step of one rank says. `place` names it; files that are needed for a moment go below `directory`.
StatusOr<RankFindings> JudgeKernels(std::vector<KernelFinding> findings, const FilePair& place,
                                    const std::string& directory);

}  // namespace msprobe
