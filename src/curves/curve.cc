#include "curves/curve.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/message.h"

namespace msprobe {

std::string_view CurveKindText(CurveKind kind) {
  switch (kind) {
    case CurveKind::kLoss: return "loss";
    case CurveKind::kGradNorm: return "grad norm";
    case CurveKind::kLearningRate: return "learning rate";
    case CurveKind::kEvalLoss: return "evaluation loss";
  }
  return "";
}

Status CurveCollector::Add(CurveKind kind, int64_t step, double value, double unit) {
  std::vector<Point>& points = points_[static_cast<size_t>(kind)];
  if (points.size() >= kMaxCurvePoints) {
    return BadInput(
        Msg("more than {} values of the {}: give a log of one training", kMaxCurvePoints, CurveKindText(kind)));
  }
  points.push_back({step, value, unit});
  return OkStatus();
}

void CurveCollector::Shift(int64_t steps) {
  for (std::vector<Point>& points : points_) {
    for (Point& point : points) point.step += steps;
  }
}

void CurveCollector::Finish(RunCurves* out) {
  for (const CurveKind kind : kCurveKinds) {
    std::vector<Point>& points = points_[static_cast<size_t>(kind)];
    std::stable_sort(points.begin(), points.end(), [](const Point& a, const Point& b) { return a.step < b.step; });
    Curve& curve = out->of(kind);
    size_t twice = 0;
    for (const Point& point : points) {
      if (!curve.steps.empty() && curve.steps.back() == point.step) {
        ++twice;
        curve.values.back() = point.value;
        curve.units.back() = point.unit;
        continue;
      }
      curve.steps.push_back(point.step);
      curve.values.push_back(point.value);
      curve.units.push_back(point.unit);
    }
    if (twice > 0 && kind == CurveKind::kLoss) {
      out->notes.push_back(Msg("{} steps come more than once, of which the last one counts", twice));
    }
    points.clear();
  }
}

}  // namespace msprobe
