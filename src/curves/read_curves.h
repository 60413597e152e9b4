// The curves of a training from whatever file it left.
#pragma once

#include <string>

#include "curves/curve.h"

namespace msprobe {

/// A log, csv, trainer_state.json, event file of TensorBoard, .trend.db, or a directory with event files or with
/// trainer_state.json. kBadInput with what is missing and what to give.
StatusOr<RunCurves> ReadCurves(const std::string& path, const CurveNames& names);

}  // namespace msprobe
