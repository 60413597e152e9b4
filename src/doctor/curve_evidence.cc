#include "doctor/curve_evidence.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "base/message.h"

namespace msprobe {
namespace {

// Relative differences of a loss. Below the first, rounding of float32 in other orders may explain them at the first
// steps; above the second, nothing of the kind does. Half precision rounds 65536 times coarser, sums less so.
constexpr double kRoundedLoss = 2e-5, kApartLoss = 1e-3, kRoundedLossHalf = 2e-3, kApartLossHalf = 1e-2;
constexpr double kRoundedNorm = 1e-4, kApartNorm = 2e-3, kRoundedNormHalf = 1e-2, kApartNormHalf = 5e-2;

struct Bounds {
  double rounded, apart;
};

using Chosen = std::optional<LoggedNumber> (*)(const LoggedStep& step);

std::optional<LoggedNumber> LossOf(const LoggedStep& step) { return step.loss; }
std::optional<LoggedNumber> NormOf(const LoggedStep& step) { return step.gradient_norm; }
std::optional<LoggedNumber> RateOf(const LoggedStep& step) { return step.learning_rate; }

/// |a - b| that the printed digits do not explain, relative.
double Beyond(const LoggedNumber& a, const LoggedNumber& b) {
  if (std::isnan(a.value) && std::isnan(b.value)) return 0;
  if (a.value == b.value) return 0;
  if (!std::isfinite(a.value) || !std::isfinite(b.value)) return INFINITY;
  const double digits = a.half_digit + b.half_digit;
  const double apart = std::abs(a.value - b.value) - digits;
  const double size = std::max(std::abs(a.value), std::abs(b.value));
  return apart <= 1e-3 * digits || size == 0 ? 0 : apart / size;
}

/// Numbers of the steps from 0: logs that begin with 1 count from there.
int64_t FirstNumber(const TrainingLog& a, const TrainingLog& b) {
  return std::min(a.steps.front().number, b.steps.front().number);
}

CurveComparison CompareNumbers(const TrainingLog& a, const TrainingLog& b, Chosen chosen, const Bounds& bounds) {
  CurveComparison out;
  const int64_t begin = FirstNumber(a, b);
  // The difference of rounding grows in training, so the later steps are held against the earlier ones.
  double usual = 0;
  auto y = b.steps.begin();
  for (const LoggedStep& x : a.steps) {
    while (y != b.steps.end() && y->number < x.number) ++y;
    if (y == b.steps.end()) break;
    if (y->number != x.number) continue;
    const auto left = chosen(x), right = chosen(*y);
    if (!left || !right) continue;
    CurvePoint point{static_cast<int>(std::min<int64_t>(x.number - begin, INT32_MAX)), x.number, left->value,
                     right->value, Beyond(*left, *right)};
    if (point.relative > std::max(bounds.apart, 20 * usual)) {
      if (!out.parted) out.parted = point;
    } else if (point.relative > std::max(bounds.rounded, 5 * usual)) {
      if (!out.unsure) out.unsure = point;
    }
    if (out.points.size() < 5) usual = std::max(usual, std::min(point.relative, bounds.rounded));
    out.points.push_back(point);
  }
  const size_t quarter = out.points.size() - out.points.size() / 4;
  size_t positive = 0, differing = 0;
  for (size_t i = 0; i < out.points.size(); ++i) {
    const double difference = out.points[i].b - out.points[i].a;
    if (difference != 0) ++differing;
    if (difference > 0) ++positive;
    if (i + 1 >= quarter) out.mean_difference += difference;
  }
  const size_t last = out.points.size() + 1 - std::min(quarter, out.points.size() + 1);
  if (last > 0) out.mean_difference /= static_cast<double>(last);
  if (differing > 0) out.positive = static_cast<double>(positive) / static_cast<double>(differing);
  return out;
}

/// The longest log that learns, or does not; null without one.
const TrainingLog* FindLog(const RunFiles& run, bool frozen) {
  const auto found = std::ranges::find_if(run.logs, [&](const TrainingLog& log) { return IsFrozen(log) == frozen; });
  return found == run.logs.end() ? nullptr : &*found;
}

int FirstNotFinite(const TrainingLog& log) {
  for (const LoggedStep& step : log.steps) {
    const bool bad =
        !std::isfinite(step.loss.value) || (step.gradient_norm && !std::isfinite(step.gradient_norm->value));
    if (bad) return static_cast<int>(step.number - log.steps.front().number);
  }
  return -1;
}

void AddBand(const TrainingLog& left, const std::vector<RunFiles>& again, CurveEvidence* out) {
  std::vector<const Curve*> golden{&left.loss};
  for (const RunFiles& more : again) {
    if (!more.logs.empty()) golden.push_back(&more.logs.front().loss);
  }
  if (golden.size() < 2) return;
  auto band = MakeBand(golden);
  if (!band.ok()) {
    out->notes.push_back(band.status().text());
    return;
  }
  out->band = *std::move(band);
  for (const CurvePoint& point : out->loss.points) {
    const auto half_width = out->band->At(point.number);
    if (!half_width || point.relative == 0 || std::abs(point.a - point.b) <= *half_width) continue;
    out->out_of_band = point;
    return;
  }
}

CurveEvidence CompareLogs(const TrainingLog& left, const TrainingLog& right, bool half) {
  CurveEvidence out;
  out.loss = CompareNumbers(left, right, LossOf,
                            half ? Bounds{kRoundedLossHalf, kApartLossHalf} : Bounds{kRoundedLoss, kApartLoss});
  out.norm = CompareNumbers(left, right, NormOf,
                            half ? Bounds{kRoundedNormHalf, kApartNormHalf} : Bounds{kRoundedNorm, kApartNorm});
  out.rate = CompareNumbers(left, right, RateOf, {1e-4, 1e-3});
  out.seen = !out.loss.points.empty();
  const int64_t begin = FirstNumber(left, right);
  out.from_start = begin <= 1 && left.steps.front().number == right.steps.front().number;
  out.frozen = IsFrozen(left) && IsFrozen(right);
  const int bad_a = FirstNotFinite(left), bad_b = FirstNotFinite(right);
  out.not_finite_a = bad_a >= 0;
  out.not_finite_b = bad_b >= 0;
  out.not_finite_step = bad_b >= 0 ? bad_b : bad_a;
  if (!out.seen) out.notes.push_back(Msg("the logs have no step in common"));
  return out;
}

}  // namespace

CurveEvidence CompareCurves(const RunFiles& a, const RunFiles& b, const std::vector<RunFiles>& again, bool half) {
  const TrainingLog *left = FindLog(a, false), *right = FindLog(b, false);
  if (a.logs.empty() || b.logs.empty()) return {};
  CurveEvidence out = CompareLogs(left ? *left : a.logs.front(), right ? *right : b.logs.front(), half);
  AddBand(left ? *left : a.logs.front(), again, &out);
  return out;
}

CurveEvidence CompareFrozenCurves(const RunFiles& a, const RunFiles& b, bool half) {
  const TrainingLog *left = FindLog(a, true), *right = FindLog(b, true);
  return left && right ? CompareLogs(*left, *right, half) : CurveEvidence();
}

}  // namespace msprobe
