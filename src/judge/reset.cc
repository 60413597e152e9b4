// Running means of an optimizer fall by their decay and no further, and are never exactly zero once a gradient came.
#include <cmath>

#include "judge/run_judge.h"

namespace msprobe {
namespace {

constexpr size_t kMomentHeld = 20;
constexpr double kFastestDecay = 0.5;       // of squares, in a step
constexpr double kLeastBeforeZero = 1e-20;  // what is smaller may vanish in rounding

}  // namespace

void RunJudge::JudgeReset() {
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.together || row.norm == SIZE_MAX || !row.key.table.starts_with("exp_avg") || !IsHere(i)) continue;
    if (row.seen_before < 0) continue;
    const double before = row.before[row.norm], now = row.now[row.norm];
    const auto gap = static_cast<double>(step_ - row.step);
    row.step = step_;
    if (!(before > kLeastBeforeZero) || !std::isfinite(before) || !std::isfinite(now)) continue;
    const bool squares = row.key.table == "exp_avg_sq";
    const double floor = squares ? before * std::pow(kFastestDecay, std::max(gap, 1.0)) : 0;
    if (now < floor || now == 0) {
      if (row.held >= kMomentHeld) Tell(i, row.norm, {Detector::kReset, step_, kExactStrength, before, now});
      row.held = 0;
    } else {
      ++row.held;
    }
  }
}

}  // namespace msprobe
