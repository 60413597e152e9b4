// Curves out of csv files, trainer_state.json of transformers, and .trend.db files.
#pragma once

#include <string>
#include <string_view>

#include "curves/curve.h"

namespace msprobe {

/// A column of steps (else rows count) and columns of quantities, found by their names; of a table that TensorBoard
/// exported ("Wall time,Step,Value") the value is the loss.
StatusOr<RunCurves> ReadCsvCurves(std::string_view text, const std::string& path, const CurveNames& names);
/// The list "log_history".
StatusOr<RunCurves> ReadTrainerState(std::string_view text, const std::string& path, const CurveNames& names);
/// Loss: the mean of an output of the op whose name says so, or of that named by --loss; grad norm: the root of the
/// summed squares of the norms of all gradients of rank 0.
StatusOr<RunCurves> ReadTrendCurves(const std::string& path, const CurveNames& names);

}  // namespace msprobe
