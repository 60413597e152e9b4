// What a replay finds: weights, terms, norms of gradients.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/message.h"
#include "optimizer/weight_check.h"

namespace msprobe {

struct ReplayedWeight {
  std::string name;
  std::vector<int64_t> shape;
  DType dtype = DType::kUnknown;
  size_t group = 0;
  WeightCheck check;  // of all steps
  bool fine = true;
};

/// A term that is not as the hyperparameters say.
struct TermFinding {
  std::string term;  // "eps_inside_root"; "" when no known term explains the weights
  Message text;      // a sentence
  Message scope;     // "all weights", "weights of one dimension", ...
  std::vector<std::string> weights;
  std::vector<std::string> others;  // terms that explain the same in these steps
};

struct StepNorm {
  int64_t step = 0;
  double norm = 0;  // of all gradients that step() was given
  double lr = 0;    // of the first group
};

}  // namespace msprobe
