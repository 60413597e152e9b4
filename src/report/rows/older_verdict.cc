#include "report/rows/older_verdict.h"

#include <algorithm>
#include <cmath>

#include "sheet/cell.h"

namespace msprobe {

std::string_view AccuracyText(const TensorDiff& diff) {
  constexpr double kGood = 0.99, kLeast = 0.9, kSmall = 0.001, kMost = 1;
  const MetricCell &cosine = diff.cells[kCosine], &error = diff.cells[kMaxAbsErr];
  using Kind = MetricCell::Kind;
  if (cosine.kind == Kind::kShapeUnmatched) return "Unmatched";
  if (cosine.kind == Kind::kNA || error.kind == Kind::kNA) return "No";
  if (cosine.kind == Kind::kUnsupported || error.kind == Kind::kUnsupported) return "None";
  // Nan is below no limit.
  const double c = cosine.IsNumber() ? cosine.value : NAN, e = error.IsNumber() ? error.value : NAN;
  if (c < kGood && e > kSmall) return "No";
  return c < kLeast || e > kMost ? "No" : "Yes";
}

namespace {
constexpr std::string_view kGradDiffers = "Requires_grad inconsistent.";

/// As release 8.1.1 has it, which takes the larger one with its sign: negative values are far apart sooner.
bool IsWarning(double target, double golden) {
  constexpr double kMost = 0.5, kSmallest = 1e-10;
  return std::fabs((target - golden) / (std::max(target, golden) + kSmallest)) > kMost;
}

bool AnyFarApart(const ItemView& a, const ItemView& b, const DiffRow& row) {
  for (size_t k = 0; k < kStatCount; ++k) {
    if (row.diff[k].diff_cell != StatDiff::Cell::kNumber) continue;
    if (!a.stats[k].IsNumber() || !b.stats[k].IsNumber()) continue;
    if (IsWarning(a.stats[k].AsDouble(), b.stats[k].AsDouble())) return true;
  }
  return false;
}
}  // namespace

bool IsUnmatched(const DiffRow& row) { return row.golden == kNoItem || row.golden_only; }

OlderResult OlderStatistics(const OpDiff& op, size_t row) {
  const DiffRow& diff = op.rows[row];
  if (IsUnmatched(diff)) return {kNotAvailableCell, std::string(kNoBenchData)};
  OlderResult out;
  if (AnyFarApart(op.target[row], op.golden[static_cast<size_t>(diff.golden)], diff)) {
    out = {"Warning", "Need double check api accuracy."};
  }
  if (!diff.grad_consistent) out.message += (out.message.empty() ? "" : " ") + std::string(kGradDiffers);
  return out;
}

std::string_view OlderVerdict(const OpDiff& op, size_t row, CompareMode mode) {
  if (mode == CompareMode::kTensor) return AccuracyText(op.tensors[row]);
  if (mode == CompareMode::kStatistics) return OlderStatistics(op, row).verdict;
  const DiffRow& diff = op.rows[row];
  const bool same = diff.golden != kNoItem && !diff.golden_only &&
                    op.target[row].checksum == op.golden[static_cast<size_t>(diff.golden)].checksum;
  return same ? "Pass" : "Different";
}

}  // namespace msprobe
