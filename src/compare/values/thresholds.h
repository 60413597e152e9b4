// The numbers by which a comparison judges; a YAML file can set others.
#pragma once

#include <string>

#include "base/status.h"
#include "tensor/kernels/dtype.h"

namespace msprobe {

struct Thresholds {
  // statistics
  double input_agrees = 0.1;      // NormRelativeErr below which inputs count as agreeing
  double output_wrong = 0.5;      // and above which an output is then wrong
  double growth = 10;             // outputs may be this many times as far apart as inputs
  double growth_from_zero = 0.1;  // or this far when inputs are equal
  // tensor
  double ratio_agrees = 0.9;   // One Thousandth Err Ratio above which inputs count as agreeing
  double ratio_wrong = 0.6;    // and below which an output is then wrong
  double cosine_agrees = 0.9;  // Cosine above which inputs count as agreeing
  double cosine_drop = 0.1;    // and by how much that of the output may be lower
  // highlight: the colours of -hl
  double huge = 1e10;              // red: a difference beyond it
  double red_ratio_agrees = 0.9;   // red: inputs above it in One Thousandth Err Ratio,
  double red_ratio_wrong = 0.6;    // the output below this
  double red_relative = 0.5;       // red: MaxRelativeErr of an output above this
  double yellow_growth = 10;       // yellow: the difference of an output so many times that of the inputs,
  double yellow_growth_above = 1;  // where both are above this
  double yellow_ratio_drop = 0.1;
  double yellow_relative_agrees = 0.01;  // yellow: MaxRelativeErr of the inputs below this,
  double yellow_relative = 0.1;          // of the output above this
  double yellow_cosine_drop = 0.1;
  // diff_analyze
  double most_relative = 0.5;  // relative error of a statistic of an output beyond which an op is different
  // ruler
  double tolerance_float32 = 1e-5;  // relative error of values that both runs have rounded before
  double tolerance_float16 = 2e-3;
  double tolerance_bfloat16 = 1.6e-2;
  double tolerance_float8 = 0.25;
  double stands_out = 10;          // an output is to blame when it is this many times further apart than the inputs
  double bug = 100;                // and is called a bug, amid rounding, this many times beyond round-off
  double stands_out_later = 1000;  // behind a difference from outside: this much further than round-off
  double louder = 4;               // an input stands out that differs so many times as much as what adds up

  /// What rounding explains between two runs, of values of this type; 0 where they are equal or not.
  double ToleranceOf(DType t) const;
};

const Thresholds& DefaultThresholds();

/// Of a YAML file: sections of keys, each of which may be left out. "rules: code" above them takes the numbers that the
/// older tool's code holds where its documentation says otherwise. kBadInput with key, value, what is allowed, and
/// line.
StatusOr<Thresholds> ReadThresholds(const std::string& path);

/// The file that ReadThresholds reads, with all keys and what they mean.
std::string ThresholdsYaml(const Thresholds& thresholds);

}  // namespace msprobe
