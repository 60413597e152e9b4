#include "report/columns.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "compare/ruler.h"
#include "compare/tensor_diff.h"

namespace msprobe {

namespace {
std::string ErrorText(double error) { return std::isfinite(error) ? fmt::format("{:.3g}", error) : " inf"; }
}  // namespace

std::vector<std::string_view> TableColumns(CompareMode mode, bool with_stack, const std::vector<std::string>& custom,
                                           const MoreColumns& more) {
  std::vector<std::string_view> out = {"NPU Name",          "Bench Name",         "NPU Dtype",
                                       "Bench Dtype",       "NPU Tensor Shape",   "Bench Tensor Shape",
                                       "NPU Requires_grad", "Bench Requires_grad"};
  const auto add = [&](std::initializer_list<std::string_view> names) { out.insert(out.end(), names); };
  if (mode == CompareMode::kStatistics) {
    add({"Max diff", "Min diff", "Mean diff", "L2norm diff"});
    add({"MaxRelativeErr", "MinRelativeErr", "MeanRelativeErr", "NormRelativeErr"});
  } else if (mode == CompareMode::kTensor) {
    out.insert(out.end(), kMetricNames.begin(), kMetricNames.end());
    out.insert(out.end(), custom.begin(), custom.end());
  } else {
    add({"NPU MD5", "BENCH MD5"});
  }
  if (mode != CompareMode::kChecksum) {
    add({"NPU max", "NPU min", "NPU mean", "NPU l2norm"});
    add({"Bench max", "Bench min", "Bench mean", "Bench l2norm"});
  }
  add({"Requires_grad Consistent", more.older && mode == CompareMode::kTensor ? "Accuracy Reached or Not" : "Result"});
  if (!more.older || mode != CompareMode::kChecksum) add({"Err_message"});
  if (with_stack) add({"NPU_Stack_Info"});
  if (mode == CompareMode::kTensor) add({"Data_name"});
  if (more.ruler) add({"Ruler Error", "Ruler Units", "Ruler Verdict"});
  if (more.replay) add({"Replay Verdict", "NPU Replay Error", "Bench Replay Error"});
  return out;
}

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
/// Half of the larger one, or more.
bool IsFarApart(const ItemView& a, const ItemView& b, const DiffRow& row) {
  constexpr double kMost = 0.5, kSmallest = 1e-10;
  for (size_t k = 0; k < kStatCount; ++k) {
    if (row.diff[k].diff_cell != StatDiff::Cell::kNumber) continue;
    if (!a.stats[k].IsNumber() || !b.stats[k].IsNumber()) continue;
    const double largest = std::max(std::fabs(a.stats[k].AsDouble()), std::fabs(b.stats[k].AsDouble()));
    if (std::fabs(row.diff[k].diff) / (largest + kSmallest) > kMost) return true;
  }
  return false;
}
}  // namespace

OlderResult OlderStatistics(const OpDiff& op, size_t row) {
  const DiffRow& diff = op.rows[row];
  if (diff.golden == kNoItem || diff.golden_only) return {kNotAvailableCell, "No bench data matched."};
  OlderResult out;
  if (IsFarApart(op.target[row], op.golden[static_cast<size_t>(diff.golden)], diff)) {
    out = {"Warning", "Need double check api accuracy. "};
  }
  if (!diff.grad_consistent) out.message += "Requires_grad inconsistent. ";
  return out;
}

std::string OlderRelative(const StatDiff& diff, const StatValue& golden) {
  std::string out;
  const bool zero = golden.IsNumber() && golden.AsDouble() == 0 && diff.diff_cell == StatDiff::Cell::kNumber;
  if (zero) return std::string(kNotAvailableCell);
  diff.AppendRel(&out);
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

ReplayLookup::ReplayLookup(const std::vector<ReplayedOp>* replays, const std::string& target_dump)
    : active_(replays != nullptr) {
  if (!replays) return;
  for (const ReplayedOp& op : *replays) {
    if (op.target_dump == target_dump) ops_.emplace(op.name, &op);
  }
}

ReplayCells ReplayLookup::Cells(const OpDiff& op, size_t row) const {
  ReplayCells out;
  out.fill(std::string(kNotAvailableCell));
  const auto it = ops_.find(op.op);
  const ItemView& item = op.target[row];
  if (it == ops_.end() || op.rows[row].golden_only || item.state != ItemState::kOutput) return out;
  if (it->second->items.empty()) out[0] = ReplayVerdictText(it->second->verdict);
  for (const ReplayedItem& replayed : it->second->items) {
    if (item.suffix != "." + replayed.item) continue;
    out[0] = ReplayVerdictText(replayed.verdict);
    out[1] = ErrorText(replayed.target.error);
    out[2] = ErrorText(replayed.golden.error);
  }
  return out;
}

std::string RulerText(double value, const RulerCell& cell) {
  if (cell.verdict == RulerVerdictText(RulerVerdict::kNone)) return std::string(kNotAvailableCell);
  return std::isinf(value) ? " inf" : fmt::format("{:.3g}", value);
}

std::string DataNameCell(std::string_view target, std::string_view golden) {
  std::string out = "[";
  AppendPyStrRepr(out, target);
  out += ", ";
  AppendPyStrRepr(out, golden);
  return out + "]";
}

}  // namespace msprobe
