#include "curves/means.h"

#include <algorithm>
#include <map>

#include "base/message.h"

namespace msprobe {
namespace {

bool LogsMeans(const RunCurves& run) {
  return run.format == "trainer_state.json" || run.format == "log of transformers" || run.format == "log of Megatron";
}

/// Most lines are that many steps apart; 0: there are not two.
int64_t StrideOf(const Curve& curve) {
  std::map<int64_t, size_t> counts;
  for (size_t i = 1; i < curve.size(); ++i) ++counts[curve.steps[i] - curve.steps[i - 1]];
  const auto most = std::ranges::max_element(counts, {}, [](const auto& item) { return item.second; });
  return most == counts.end() ? 0 : most->first;
}

/// The curve at the steps of `lines`, each the mean of the steps since the line before; those of which a step lacks are
/// left out.
Curve Averaged(const Curve& single, int64_t stride, const Curve& lines, int64_t apart) {
  Curve out;
  size_t at = 0;
  int64_t before = std::max<int64_t>(lines.steps[0] - apart, 0);
  for (const int64_t line : lines.steps) {
    double sum = 0, unit = 0;
    int64_t count = 0;
    while (at < single.size() && single.steps[at] <= before) ++at;
    for (; at < single.size() && single.steps[at] <= line; ++at, ++count) {
      sum += single.values[at];
      unit = std::max(unit, single.units[at]);
    }
    if (count > 0 && count * stride >= line - before) {
      out.steps.push_back(line);
      out.values.push_back(sum / static_cast<double>(count));
      out.units.push_back(unit);
    }
    before = line;
  }
  return out;
}

}  // namespace

void AverageAlike(std::span<RunCurves* const> runs) {
  const RunCurves* coarsest = nullptr;
  for (const RunCurves* run : runs) {
    const bool coarser = !coarsest || StrideOf(run->of(CurveKind::kLoss)) > StrideOf(coarsest->of(CurveKind::kLoss));
    if (LogsMeans(*run) && coarser) coarsest = run;
  }
  if (!coarsest) return;
  const Curve lines = coarsest->of(CurveKind::kLoss);
  const int64_t apart = StrideOf(lines);
  for (RunCurves* run : runs) {
    Curve& loss = run->of(CurveKind::kLoss);
    const int64_t stride = StrideOf(loss);
    if (stride < 1 || stride >= apart) continue;
    Curve averaged = Averaged(loss, stride, lines, apart);
    if (averaged.empty()) continue;
    loss = std::move(averaged);
    run->notes.push_back(
        Msg("the losses are averaged over {} steps, as those of {} are: it logs means", apart, coarsest->path));
  }
}

}  // namespace msprobe
