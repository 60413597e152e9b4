// What happens to gradients between the backward pass and the optimizer: a common factor at most, and a limit.
#include <algorithm>
#include <cmath>

#include "judge/run_judge.h"

namespace msprobe {
namespace {

constexpr double kSameFactor = 1e-4, kOtherFactor = 1e-2;  // relative; between them nothing is said
constexpr size_t kLongEnough = 100, kFewestClipped = 10;
constexpr double kAtLimit = 1e-4, kAboveLimit = 1e-2, kFarBelow = 0.5;

double FactorOf(const RunJudge::Row& reduced, const RunJudge::Row& own) {
  const double a = reduced.now[reduced.norm], b = own.now[own.norm];
  return b > 0 && std::isfinite(a) && std::isfinite(b) ? a / b : std::nan("");
}

// How far a row is from `factor` times the other, as a part of its norm.
double Deviation(const RunJudge::Row& reduced, const RunJudge::Row& own, double factor) {
  double worst = 0;
  const double size = factor * own.now[own.norm];
  for (size_t c = 0; c < reduced.columns.size() && c < own.columns.size(); ++c) {
    const std::string& column = reduced.columns[c];
    if (column != own.columns[c] || (column != "norm" && column != "min" && column != "max")) continue;
    worst = std::max(worst, std::fabs(reduced.now[c] - factor * own.now[c]) / size);
  }
  return worst;
}

}  // namespace

void RunJudge::JudgeReduction(Reduction* reduction) {
  if (reduction->off) return;
  std::vector<double> factors;
  for (const size_t i : reduction->rows) {
    Row& row = rows_[i];
    if (row.partner == SIZE_MAX) {
      const auto own = ids_.find(std::to_string(row.key.rank) + "\ngrad_unreduced\n" +
                                 std::to_string(row.key.vpp_stage) + "\n-1\n" + row.key.name);
      if (own == ids_.end()) continue;
      row.partner = own->second;
    }
    if (!IsHere(i) || !IsHere(row.partner) || row.norm == SIZE_MAX || rows_[row.partner].norm == SIZE_MAX) continue;
    const double factor = FactorOf(row, rows_[row.partner]);
    if (std::isfinite(factor)) factors.push_back(factor);
  }
  if (factors.size() < 3) return;
  std::nth_element(factors.begin(), factors.begin() + static_cast<std::ptrdiff_t>(factors.size() / 2), factors.end());
  const double factor = factors[factors.size() / 2];
  if (!(factor > 0)) return;
  bool holds = true;
  for (const size_t i : reduction->rows) {
    Row& row = rows_[i];
    if (row.partner == SIZE_MAX || !IsHere(i) || !IsHere(row.partner) || row.norm == SIZE_MAX) continue;
    const Row& own = rows_[row.partner];
    if (!(own.now[own.norm] > 0)) continue;
    const double deviation = Deviation(row, own, factor);
    holds &= deviation <= kSameFactor;
    if (reduction->held < kLongEnough || !(deviation > kOtherFactor)) continue;
    if (!row.never_held) {
      Tell(i, row.norm, {Detector::kReduction, step_, kExactStrength, factor * own.now[own.norm], row.now[row.norm]});
    }
    row.never_held = true;
  }
  if (holds) {
    ++reduction->held;
  } else if (reduction->held < kLongEnough) {
    reduction->off = true;  // an average over ranks, or a limit of its own for each
  }
  if (factor <= 1 + kSameFactor) {
    ++reduction->no_growth;
  } else if (reduction->no_growth < kLongEnough) {
    reduction->told_growth = true;  // a sum over ranks
  } else if (!reduction->told_growth && factor > 1 + kOtherFactor) {
    reduction->told_growth = true;
    const size_t row = reduction->rows[0];
    Tell(row, rows_[row].norm,
         {Detector::kReduction, step_, kExactStrength, rows_[row].now[rows_[row].norm] / factor,
          rows_[row].now[rows_[row].norm]});
  }
}

// From a step on clipping holds the norm of all gradients at a value that no step before came near.
void RunJudge::JudgePinned(Reduction* reduction, double total) {
  std::vector<double>& last = reduction->last;
  const bool same = !last.empty() && std::fabs(total - last.back()) <= kAtLimit * last.back();
  if (!same) reduction->pinned_since = step_;
  reduction->pinned = same ? reduction->pinned + 1 : 1;
  last.push_back(total);
  if (last.size() < kLongEnough) return;
  if (reduction->pinned == kFewestClipped) {
    const double before = *std::min_element(last.begin(), last.end() - static_cast<std::ptrdiff_t>(kFewestClipped));
    const size_t row = reduction->rows[0];
    if (total > 0 && total < kFarBelow * before) {
      Tell(row, rows_[row].norm, {Detector::kPinned, reduction->pinned_since, kExactStrength, before, total});
    }
  }
  if (last.size() > 2 * kLongEnough) last.erase(last.begin(), last.begin() + static_cast<std::ptrdiff_t>(kLongEnough));
}

// The norm of all gradients, which clipping holds at a limit.
void RunJudge::JudgeClip(Reduction* reduction) {
  double squares = 0;
  size_t count = 0;
  for (const size_t i : reduction->rows) {
    const Row& row = rows_[i];
    if (!IsHere(i) || row.norm == SIZE_MAX || !std::isfinite(row.now[row.norm])) continue;
    squares += row.now[row.norm] * row.now[row.norm];
    ++count;
  }
  if (count == 0) return;
  const double total = std::sqrt(squares);
  ++reduction->totals;
  JudgePinned(reduction, total);
  if (reduction->told_clip) return;
  if (total > reduction->limit * (1 + kAtLimit)) {
    const bool known = reduction->at_limit >= kFewestClipped && reduction->totals >= kLongEnough;
    if (known && total > reduction->limit * (1 + kAboveLimit)) {
      reduction->told_clip = true;
      const size_t row = reduction->rows[0];
      Tell(row, rows_[row].norm, {Detector::kClip, step_, kExactStrength, reduction->limit, total});
      return;
    }
    if (!known) reduction->limit = total, reduction->at_limit = 1;
  } else if (total >= reduction->limit * (1 - kAtLimit)) {
    ++reduction->at_limit;
  }
}

}  // namespace msprobe
