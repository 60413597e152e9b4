// Where the printed curves of two runs part.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "base/message.h"
#include "curves/band.h"
#include "doctor/files/run_files.h"
#include "doctor/stage.h"

namespace msprobe {

/// The same number of both runs.
struct CurvePoint {
  int step = -1;        // from 0
  int64_t number = -1;  // as it is printed
  double a = 0, b = 0;
  double relative = 0;  // |a - b| beyond the printed digits, relative to the larger
};

struct CurveComparison {
  std::vector<CurvePoint> points;
  /// The first beyond what rounding may explain; none where all agree.
  std::optional<CurvePoint> parted, unsure;
  double mean_difference = 0;  // b - a over the last quarter
  double positive = 0;         // share of b > a
};

struct CurveEvidence {
  bool seen = false;        // both have losses of the same steps
  bool from_start = false;  // the first step of both is the first of the training
  CurveComparison loss, norm, rate;
  bool frozen = false;  // both ran with a learning rate of 0
  bool not_finite_a = false, not_finite_b = false;
  int not_finite_step = -1;
  std::optional<GoldenBand> band;  // of the losses, from further runs of the reference
  std::optional<CurvePoint> out_of_band;
  std::vector<Message> notes;
};

/// `again`: further runs of A. `half`: the runs compute in half precision, or nobody knows.
CurveEvidence CompareCurves(const RunFiles& a, const RunFiles& b, const std::vector<RunFiles>& again, bool half);

/// Of the logs of runs with a learning rate of 0, where both have one.
CurveEvidence CompareFrozenCurves(const RunFiles& a, const RunFiles& b, bool half);

}  // namespace msprobe
