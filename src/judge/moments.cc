// Running means of an optimizer: what their gradients explain is judged at the gradients. They fall by their decay and
// no further, rise by a share of the gradient and no further, and are never exactly zero once a gradient came.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "judge/run_judge.h"

namespace msprobe {
namespace {

constexpr size_t kMomentHeld = 20;          // steps after which a relation that broke is told
constexpr size_t kPaceKnown = 100;          // steps after which its pace is known
constexpr double kFastestDecay = 0.5;       // of squares, in a step
constexpr double kLeastBeforeZero = 1e-20;  // what is smaller may vanish in rounding
constexpr double kFaster = 1.5;             // than ever: not explained
constexpr int64_t kMostBefore = 2;          // steps before the beginning of a level, which is known to a few

}  // namespace

void RunJudge::JudgeReset(size_t number) {
  Row& row = rows_[number];
  const double before = row.before[row.norm], now = row.now[row.norm];
  const bool squares = row.key.table == "exp_avg_sq";
  const auto gap = static_cast<double>(std::max<int64_t>(step_ - row.pace.step, 1));
  const double floor = squares ? before * std::pow(kFastestDecay, gap) : 0;
  if (before > kLeastBeforeZero && (now < floor || now == 0)) {
    if (row.held >= kMomentHeld) Tell(number, row.norm, {Detector::kReset, step_, kExactStrength, before, now});
    row.held = 0;
  } else {
    ++row.held;
  }
}

// The fastest rise for each unit of gradient and the fastest fall for each of itself, and when it was faster than ever.
void RunJudge::FollowPace(size_t number) {
  Row& row = rows_[number];
  if (row.partner == SIZE_MAX) {
    const auto found = ids_.find(
        fmt::format("{}\ngrad_reduced\n{}\n{}\n{}", row.key.rank, row.key.vpp_stage, row.key.micro_step, row.key.name));
    if (found == ids_.end()) return;
    row.partner = found->second;
  }
  const Row& gradient = rows_[row.partner];
  // The gradient of the step before made what is here now.
  const bool newer = gradient.seen == step_count_;
  const int64_t made_at = newer ? gradient.seen_before : gradient.seen;
  if (gradient.norm == SIZE_MAX || made_at != step_count_ - 1 || step_ != row.pace.step + 1) return;
  const double size = newer ? gradient.before[gradient.norm] : gradient.now[gradient.norm];
  const bool squares = row.key.table == "exp_avg_sq";
  const double share = squares ? size * size : size;
  const double before = row.before[row.norm], change = row.now[row.norm] - before;
  const double from = change > 0 ? share : squares ? before : before + share;
  Row::Pace& pace = row.pace;
  ++pace.steps;
  if (!(from > 0) || !std::isfinite(from) || !std::isfinite(change)) return;
  double& fastest = change > 0 ? pace.rise : pace.fall;
  const double now = std::fabs(change) / from;
  if (pace.steps > kPaceKnown && now > kFaster * fastest) pace.left_at = step_;
  fastest = std::max(fastest, now);
}

void RunJudge::JudgeMoments() {
  for (size_t i = 0; i < rows_.size(); ++i) {
    Row& row = rows_[i];
    if (row.together || row.norm == SIZE_MAX || !row.key.table.starts_with("exp_avg") || !IsHere(i)) continue;
    if (row.seen_before >= 0) {
      JudgeReset(i);
      FollowPace(i);
    }
    row.pace.step = step_;
  }
}

bool RunJudge::IsOfGradient(const Row& row, const Change& change) const {
  if (!row.key.table.starts_with("exp_avg") || IsExact(change.detector) || change.detector == Detector::kStuck ||
      change.detector == Detector::kZeros) {
    return false;
  }
  return row.pace.steps > kPaceKnown && row.pace.left_at < change.onset - kMostBefore;
}

}  // namespace msprobe
