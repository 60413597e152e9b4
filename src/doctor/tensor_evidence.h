// Saved batches, gradients, checkpoints and optimizer steps of two runs compared.
#pragma once

#include <string>
#include <vector>

#include "base/message.h"
#include "base/words/both_words.h"
#include "doctor/files/run_files.h"

namespace msprobe {

struct BatchEvidence {
  int compared = 0;  // steps that both saved
  int first = -1;    // step whose batches differ; -1: none
  BothWords how;     // of that step
  std::string file_a, file_b;
  std::vector<Message> notes;
};
BatchEvidence CompareBatches(const RunFiles& a, const RunFiles& b);

struct WeightEvidence {
  struct Pair {
    std::string a, b;
    int step = -1;
    size_t weights = 0, different = 0, rounded = 0, only_a = 0, only_b = 0;
    std::string first;  // label of the first weight that differs
    std::string first_b;
    BothWords how;
  };
  std::vector<Pair> pairs;  // by step
  std::vector<Message> notes;
};
StatusOr<WeightEvidence> CompareCheckpoints(const RunFiles& a, const RunFiles& b);

struct GradientEvidence {
  int compared = 0;
  int first = -1;
  std::string file;
  BothWords how;
};
GradientEvidence CompareGradients(const RunFiles& a, const RunFiles& b, bool half);

struct OptimizerEvidence {
  bool seen = false;     // both have a record
  bool follows = false;  // both do what their hyperparameters say, which are the same
  double factor = 1;     // the gradients of the first recorded step of B are those of A times this
  int step = -1;         // that step, from 0
  std::string term;      // that B, and not A, computes otherwise; or the hyperparameter that differs; "" for none
  BothWords how;
  std::vector<BothWords> cautions;  // what hyperparameters say and weights cannot do, of either side
  std::vector<Message> notes;
};

OptimizerEvidence CompareOptimizerRecords(const RunFiles& a, const RunFiles& b);

}  // namespace msprobe
