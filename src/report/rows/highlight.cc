#include "report/rows/highlight.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "compare/round_off/ruler.h"
#include "json/writer.h"
#include "ops/op_traits.h"

namespace msprobe {
namespace {

using Color = Cell::Color;

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

void Mark(Highlight* row, Color color, std::string reason) {
  row->color = std::max(row->color, color);
  row->reasons.push_back(std::move(reason));
}

bool IsLikeness(const Metric& metric) { return metric.curve == CurveOf::kLikeness; }

/// By the rules of the metrics themselves.
void MarkMetrics(const OpDiff& op, size_t row, Highlight* out) {
  for (size_t k = 0; k < kMetricCount; ++k) {
    const Metric& metric = *kMetrics[k];
    if (std::isinf(metric.yellow_beyond)) continue;
    double worst = kNone;
    for (size_t i = 0; i < op.rows_used; ++i) {
      if (IsResult(op.target[i].state)) continue;
      const double v = Number(op.tensors[i].cells[k]);
      worst = IsLikeness(metric) ? std::fmin(worst, v) : std::fmax(worst, v);
    }
    MarkWorse(metric, worst, Number(op.tensors[row].cells[k]), out);
  }
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
void JudgeOutput(const Thresholds& t, const Inputs& in, const Figures& out, Highlight* row) {
  if (in.ratio > t.red_ratio_agrees && out.ratio < t.red_ratio_wrong) {
    Mark(row, Color::kRed,
         fmt::format("red: {} of an input is within one thousandth, less than {} of the output", t.red_ratio_agrees,
                     t.red_ratio_wrong));
  }
  if (out.relative > t.red_relative) {
    Mark(row, Color::kRed, fmt::format("red: the Max of the output is off by more than {} %", 100 * t.red_relative));
  }
  const double least = t.yellow_growth_above;
  if (in.difference > least && out.difference > least && out.difference >= t.yellow_growth * in.difference) {
    Mark(row, Color::kYellow,
         fmt::format("yellow: the largest difference is {} times that of the inputs, or more", t.yellow_growth));
  }
  if (in.ratio - out.ratio > t.yellow_ratio_drop) {
    Mark(row, Color::kYellow,
         fmt::format("yellow: the share within one thousandth falls by more than {}", t.yellow_ratio_drop));
  }
  if (in.relative < t.yellow_relative_agrees && out.relative > t.yellow_relative) {
    Mark(row, Color::kYellow,
         fmt::format("yellow: the Max of the inputs agrees to {} %, that of the output not to {} %",
                     100 * t.yellow_relative_agrees, 100 * t.yellow_relative));
  }
  if (in.cosine - out.cosine > t.yellow_cosine_drop)
    Mark(row, Color::kYellow, fmt::format("yellow: the cosine falls by more than {}", t.yellow_cosine_drop));
}

}  // namespace

std::vector<Highlight> HighlightOp(const OpDiff& op, CompareMode mode) {
  std::vector<Highlight> out(op.rows_used);
  if (mode == CompareMode::kChecksum || IsIgnoredApi(op.op)) return out;
  const Thresholds& t = *op.thresholds;
  Inputs inputs;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (!IsResult(op.target[i].state)) inputs.Add(FiguresOf(op, i, mode));
  }
  for (size_t i = 0; i < op.rows_used; ++i) {
    const ItemView& item = op.target[i];
    const Figures figures = FiguresOf(op, i, mode);
    if (item.stats[kMax].IsNanOrInf() || item.stats[kMin].IsNanOrInf())
      Mark(&out[i], Color::kRed, "red: the target holds NaN or infinity");
    if (figures.difference > t.huge)
      Mark(&out[i], Color::kRed, fmt::format("red: the largest difference is beyond {}", t.huge));
    if (IsResult(item.state)) JudgeOutput(t, inputs, figures, &out[i]);
    if (IsResult(item.state) && mode == CompareMode::kTensor) MarkMetrics(op, i, &out[i]);
    if (!op.rows[i].grad_consistent && op.rows[i].golden != kNoItem)
      Mark(&out[i], Color::kYellow, "yellow: requires_grad differs");
  }
  return out;
}

void MarkWorse(const Metric& metric, double inputs, double output, Highlight* row) {
  const bool likeness = IsLikeness(metric);
  if (!((likeness ? inputs - output : output - inputs) > metric.yellow_beyond)) return;
  Mark(row, Color::kYellow,
       fmt::format("yellow: {} {} by more than {}", metric.title, likeness ? "falls" : "rises", metric.yellow_beyond));
}

std::string WithReasons(std::string findings, const Highlight& highlight) {
  if (highlight.reasons.empty()) return findings;
  JsonWriter json;
  json.BeginArray();
  if (findings.size() > 2) json.Raw(std::string_view(findings).substr(1, findings.size() - 2));
  for (const std::string& reason : highlight.reasons) json.String(reason);
  json.EndArray();
  return json.Take();
}

}  // namespace msprobe
