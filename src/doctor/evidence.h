// All that is known of two runs, or of one, gathered once; the stages judge it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "base/language.h"
#include "base/words/both_words.h"
#include "doctor/config_evidence.h"
#include "doctor/curve_evidence.h"
#include "doctor/dump_evidence.h"
#include "doctor/files/run_files.h"
#include "doctor/graft/graft.h"
#include "doctor/tensor_evidence.h"

namespace msprobe {

struct DoctorEvidence {
  RunFiles a, b;       // the reference, and the run in question
  std::string output;  // directory of what is written
  ConfigEvidence config;
  BatchEvidence batches;
  WeightEvidence weights;
  GradientEvidence gradients;
  CurveEvidence curves;
  CurveEvidence frozen;  // of runs with a learning rate of 0
  OptimizerEvidence optimizer;
  DumpEvidence dumps;
  GraftEvidence graft;
};

/// A step as the logs number it; without logs steps count from 1. `step`: from 0.
inline int64_t StepNumber(const DoctorEvidence& evidence, int step) {
  const CurveEvidence& curves = evidence.curves;
  if (!curves.seen || curves.loss.points.empty()) return int64_t{step} + 1;
  return curves.loss.points.front().number - curves.loss.points.front().step + step;
}

}  // namespace msprobe
