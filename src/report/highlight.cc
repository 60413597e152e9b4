#include "report/highlight.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "compare/ruler.h"

namespace msprobe {
namespace {

using Color = Highlight::Color;

constexpr double kHuge = 1e10;  // of a difference
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

/// The numbers of a row that the rules look at; NaN where there is none.
struct Figures {
  double difference = kNone;  // Max diff or MaxAbsErr, without its sign
  double relative = kNone;    // MaxRelativeErr of statistics, as a ratio
  double ratio = kNone;       // One Thousandth Err Ratio
  double cosine = kNone;
};

double Number(const MetricCell& cell) { return cell.IsNumber() ? cell.value : kNone; }

Figures FiguresOf(const OpDiff& op, size_t row, CompareMode mode) {
  Figures out;
  if (mode == CompareMode::kTensor) {
    const auto& cells = op.tensors[row].cells;
    out.difference = std::fabs(Number(cells[kMaxAbsErr]));
    out.ratio = Number(cells[kOneThousandthRatio]);
    out.cosine = Number(cells[kCosine]);
  } else if (const StatDiff& max = op.rows[row].diff[kMax]; op.rows[row].golden != kNoItem) {
    if (max.diff_cell == StatDiff::Cell::kNumber) out.difference = std::fabs(max.diff);
    if (max.diff_cell == StatDiff::Cell::kZero) out.difference = out.relative = 0;
    if (max.rel_cell == StatDiff::Cell::kNumber) out.relative = max.rel / 100;
    if (max.rel_cell == StatDiff::Cell::kInf) out.relative = std::numeric_limits<double>::infinity();
  }
  return out;
}

void Mark(Highlight* row, Color color, std::string_view reason) {
  row->color = std::max(row->color, color);
  row->reasons.push_back(reason);
}

/// The worst of the inputs: the largest errors, the smallest likenesses.
struct Inputs {
  double difference = kNone, relative = kNone, ratio = kNone, cosine = kNone;
  void Add(const Figures& f) {
    difference = std::fmax(difference, f.difference);
    relative = std::fmax(relative, f.relative);
    ratio = std::fmin(ratio, f.ratio);
    cosine = std::fmin(cosine, f.cosine);
  }
};

// Comparisons with NaN are false, so that rules without their numbers do not apply.
void JudgeOutput(const Inputs& in, const Figures& out, Highlight* row) {
  if (in.ratio > 0.9 && out.ratio < 0.6)
    Mark(row, Color::kRed, "red: 0.9 of an input is within one thousandth, less than 0.6 of the output");
  if (out.relative > 0.5) Mark(row, Color::kRed, "red: the Max of the output is off by more than half");
  if (in.difference > 1 && out.difference > 1 && out.difference >= 10 * in.difference)
    Mark(row, Color::kYellow, "yellow: the largest difference grows tenfold from input to output");
  if (in.ratio - out.ratio > 0.1)
    Mark(row, Color::kYellow, "yellow: the share within one thousandth falls by more than 0.1");
  if (in.relative < 0.01 && out.relative > 0.1)
    Mark(row, Color::kYellow, "yellow: the Max of the inputs agrees to 1 %, that of the output not to 10 %");
  if (in.cosine - out.cosine > 0.1) Mark(row, Color::kYellow, "yellow: the cosine falls by more than 0.1");
}

}  // namespace

std::vector<Highlight> HighlightOp(const OpDiff& op, CompareMode mode) {
  std::vector<Highlight> out(op.rows_used);
  if (mode == CompareMode::kChecksum || IsIgnoredApi(op.op)) return out;
  Inputs inputs;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (!IsResult(op.target[i].state)) inputs.Add(FiguresOf(op, i, mode));
  }
  for (size_t i = 0; i < op.rows_used; ++i) {
    const ItemView& item = op.target[i];
    const Figures figures = FiguresOf(op, i, mode);
    if (item.stats[kMax].IsNanOrInf() || item.stats[kMin].IsNanOrInf())
      Mark(&out[i], Color::kRed, "red: the target holds NaN or infinity");
    if (figures.difference > kHuge) Mark(&out[i], Color::kRed, "red: the largest difference is beyond 1e10");
    if (IsResult(item.state)) JudgeOutput(inputs, figures, &out[i]);
    if (!op.rows[i].grad_consistent && op.rows[i].golden != kNoItem)
      Mark(&out[i], Color::kYellow, "yellow: requires_grad differs");
  }
  return out;
}

std::string WithReasons(std::string findings, const Highlight& highlight) {
  for (const std::string_view reason : highlight.reasons) {
    findings.pop_back();
    if (findings.size() > 1) findings += ", ";
    AppendJsonString(findings, reason);
    findings += ']';
  }
  return findings;
}

}  // namespace msprobe
