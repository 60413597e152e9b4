#include "curves/band.h"

#include <algorithm>
#include <cmath>

#include "base/message.h"

namespace msprobe {
namespace {

std::vector<int64_t> CommonSteps(std::span<const Curve* const> golden) {
  std::vector<int64_t> out = golden[0]->steps;
  for (const Curve* curve : golden.subspan(1)) {
    std::vector<int64_t> both;
    std::set_intersection(out.begin(), out.end(), curve->steps.begin(), curve->steps.end(), std::back_inserter(both));
    out = std::move(both);
  }
  return out;
}

std::vector<double> ValuesAt(const Curve& curve, const std::vector<int64_t>& steps) {
  std::vector<double> out;
  size_t at = 0;
  for (const int64_t step : steps) {
    while (curve.steps[at] < step) ++at;
    out.push_back(curve.values[at]);
  }
  return out;
}

/// The largest of the window round each place.
std::vector<double> WindowMaximum(const std::vector<double>& values, size_t window) {
  std::vector<double> out(values.size());
  for (size_t i = 0; i < values.size(); ++i) {
    const size_t begin = i > window ? i - window : 0, end = std::min(values.size(), i + window + 1);
    out[i] = *std::max_element(values.begin() + static_cast<std::ptrdiff_t>(begin),
                               values.begin() + static_cast<std::ptrdiff_t>(end));
  }
  return out;
}

BandConstruction ConstructionFor(size_t runs) {
  if (runs >= kRunsForWindow) return BandConstruction::kWindow;
  return runs == 2 ? BandConstruction::kTwoRuns : BandConstruction::kWholeRun;
}

/// Of the runs in `values`, the largest difference of two at each step, then widened.
std::vector<double> HalfWidths(const std::vector<std::vector<double>>& values, size_t left_out,
                               BandConstruction construction) {
  std::vector<double> spread;
  for (size_t i = 0; i < values[0].size(); ++i) {
    double low = INFINITY, high = -INFINITY;
    for (size_t run = 0; run < values.size(); ++run) {
      if (run == left_out || !std::isfinite(values[run][i])) continue;
      low = std::min(low, values[run][i]);
      high = std::max(high, values[run][i]);
    }
    spread.push_back(high > low ? high - low : 0);
  }
  if (construction == BandConstruction::kWindow) {
    spread = WindowMaximum(spread, kBandWindow);
  } else {
    std::fill(spread.begin(), spread.end(), *std::max_element(spread.begin(), spread.end()));
  }
  const double factor = construction == BandConstruction::kTwoRuns ? kBandFactorOfTwo : kBandFactor;
  for (double& width : spread) width *= factor;
  return spread;
}

/// Each run in turn against the band of the others.
void MeasureCoverage(const std::vector<std::vector<double>>& values, GoldenBand* band) {
  if (values.size() < 3) return;
  size_t whole = 0, inside = 0, all = 0;
  for (size_t run = 0; run < values.size(); ++run) {
    const std::vector<double> widths = HalfWidths(values, run, ConstructionFor(values.size() - 1));
    const std::vector<double>& reference = values[run == 0 ? 1 : 0];
    size_t here = 0;
    for (size_t i = 0; i < widths.size(); ++i) here += std::fabs(values[run][i] - reference[i]) <= widths[i];
    whole += here == widths.size();
    inside += here;
    all += widths.size();
  }
  band->runs_covered = whole;
  band->steps_covered = static_cast<double>(inside) / static_cast<double>(all);
}

}  // namespace

std::string_view BandConstructionText(BandConstruction c) {
  switch (c) {
    case BandConstruction::kTwoRuns: return "whole-run maximum x 2";
    case BandConstruction::kWholeRun: return "whole-run maximum x 1.5";
    case BandConstruction::kWindow: return "maximum of +-20 points x 1.5";
  }
  return "";
}

bool GoldenBand::IsEmpty() const {
  return std::all_of(half_widths.begin(), half_widths.end(), [](double w) { return w == 0; });
}

std::optional<double> GoldenBand::At(int64_t step) const {
  const auto found = std::lower_bound(steps.begin(), steps.end(), step);
  if (found == steps.end() || *found != step) return std::nullopt;
  return half_widths[static_cast<size_t>(found - steps.begin())];
}

StatusOr<GoldenBand> MakeBand(std::span<const Curve* const> golden) {
  GoldenBand out;
  out.runs = golden.size();
  out.steps = CommonSteps(golden);
  if (out.steps.empty()) {
    return BadInput(Msg("the runs of A have no step in common: give runs of the same steps"));
  }
  std::vector<std::vector<double>> values;
  for (const Curve* curve : golden) values.push_back(ValuesAt(*curve, out.steps));
  out.construction = ConstructionFor(golden.size());
  out.half_widths = HalfWidths(values, golden.size(), out.construction);
  MeasureCoverage(values, &out);
  return out;
}

BandCheck CheckBand(const GoldenBand& band, const CurvePair& pair) {
  BandCheck out;
  for (size_t i = 0; i < pair.size(); ++i) {
    const auto width = band.At(pair.steps[i]);
    if (!width) continue;
    ++out.compared;
    const double allowed = std::max(*width, pair.units[i]), d = std::fabs(pair.difference(i));
    if (allowed > 0) out.worst_ratio = std::max(out.worst_ratio, d / allowed);
    if (d <= allowed) continue;
    ++out.outside;
    if (!out.first_outside) out.first_outside = pair.steps[i];
  }
  return out;
}

}  // namespace msprobe
