#include "doctor/files/training_log.h"

#include <algorithm>

#include "base/file.h"
#include "base/text.h"
#include "curves/read_curves.h"

namespace msprobe {
namespace {

std::optional<LoggedNumber> NumberAtStep(const Curve& curve, int64_t step) {
  const auto found = std::lower_bound(curve.steps.begin(), curve.steps.end(), step);
  if (found == curve.steps.end() || *found != step) return std::nullopt;
  const auto at = static_cast<size_t>(found - curve.steps.begin());
  return LoggedNumber{curve.values[at], curve.units[at] / 2};
}

}  // namespace

StatusOr<TrainingLog> ReadTrainingLog(const std::string& path) {
  MSP_ASSIGN_OR_RETURN(RunCurves curves, ReadCurves(path, {}));
  TrainingLog out;
  out.path = path;
  for (const int64_t step : curves.of(CurveKind::kLoss).steps) {
    const auto loss = NumberAtStep(curves.of(CurveKind::kLoss), step);
    if (!loss) continue;
    out.steps.push_back({step, *loss, NumberAtStep(curves.of(CurveKind::kGradNorm), step),
                         NumberAtStep(curves.of(CurveKind::kLearningRate), step)});
  }
  out.loss = std::move(curves.of(CurveKind::kLoss));
  return out;
}

bool IsFrozen(const TrainingLog& log) {
  bool any = false;
  for (const LoggedStep& step : log.steps) {
    if (!step.learning_rate) continue;
    if (step.learning_rate->value != 0) return false;
    any = true;
  }
  return any || StartsWith(BaseName(log.path), "lr0");
}

}  // namespace msprobe
