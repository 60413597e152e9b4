#include "compare/ruler.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"
#include "tensor/dtype.h"

namespace msprobe {
namespace {

/// Relative error that round-off explains: a few units in the last place of the narrower dtype.
double Tolerance(std::string_view dtype) {
  switch (ParseDType(dtype)) {
    case DType::kBFloat16: return 1.6e-2;
    case DType::kFloat16: return 2e-3;
    case DType::kFloat8E4M3FN:
    case DType::kFloat8E5M2:
    case DType::kFloat8E4M3FNUZ:
    case DType::kFloat8E5M2FNUZ:
    case DType::kFloat8E8M0FNU: return 0.25;
    case DType::kFloat32:
    case DType::kFloat64:
    case DType::kComplex64:
    case DType::kComplex128: return 1e-5;
    default: return 0;  // integers and scalars are equal or not
  }
}

double Magnitude(const StatValue& v) { return v.IsNumber() ? std::fabs(v.AsDouble()) : 0; }

/// Relative error of one statistic; infinity for a difference in kind.
double StatError(const ItemView& a, const ItemView& b, const StatDiff& diff, int k) {
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  switch (diff.diff_cell) {
    case StatDiff::Cell::kZero:
    case StatDiff::Cell::kNA: return 0;
    case StatDiff::Cell::kNumber: break;
    case StatDiff::Cell::kDiff:
      // One tool version writes a statistic where another leaves it out.
      return a.stats[static_cast<size_t>(k)].text == "None" || b.stats[static_cast<size_t>(k)].text == "None"
                 ? 0
                 : kInfinity;
    default: return kInfinity;
  }
  // Max, Min and Mean are judged against the amplitude: a mean near 0 has no meaningful relative error of its own.
  double scale = 0;
  if (k == kNorm) {
    scale = std::max(Magnitude(a.stats[kNorm]), Magnitude(b.stats[kNorm]));
  } else {
    for (const ItemView* side : {&a, &b})
      scale = std::max({scale, Magnitude(side->stats[kMax]), Magnitude(side->stats[kMin])});
  }
  return scale == 0 ? kInfinity : std::fabs(diff.diff) / scale;
}

}  // namespace

std::string_view RulerVerdictText(RulerVerdict v) {
  switch (v) {
    case RulerVerdict::kNone: return "N/A";
    case RulerVerdict::kBitEqual: return "bit-equal";
    case RulerVerdict::kRoundOff: return "round-off";
    case RulerVerdict::kInherited: return "inherited";
    case RulerVerdict::kSuspicious: return "suspicious";
    case RulerVerdict::kBug: return "bug";
  }
  return "";
}

double RowError(const OpDiff& op, size_t row, CompareMode mode) {
  const DiffRow& r = op.rows[row];
  if (r.golden == kNoItem) return 0;
  const ItemView &a = op.target[row], &b = op.golden[static_cast<size_t>(r.golden)];
  if (a.shape != b.shape) return std::numeric_limits<double>::infinity();
  if (mode == CompareMode::kChecksum) {
    // Zeros of either sign are no difference, as far as the dump shows that there is nothing else.
    const auto zero = [](const ItemView& v) { return v.stats[kNorm].IsNumber() && v.stats[kNorm].AsDouble() == 0; };
    return a.checksum == b.checksum || (zero(a) && zero(b)) ? 0 : std::numeric_limits<double>::infinity();
  }
  // Values say more than their statistics, which stand for tensors that could not be read.
  if (mode == CompareMode::kTensor && op.tensors[row].error >= 0) return op.tensors[row].error;
  double worst = 0;
  for (int k = kMax; k < kStatCount; ++k) worst = std::max(worst, StatError(a, b, r.diff[static_cast<size_t>(k)], k));
  return worst;
}

double OpTolerance(const OpDiff& op) {
  double out = 0;
  for (size_t i = 0; i < op.rows_used; ++i) out = std::max(out, Tolerance(op.target[i].dtype));
  for (size_t i = 0; i < op.golden_used; ++i) out = std::max(out, Tolerance(op.golden[i].dtype));
  return out;
}

double RowDistance(const OpDiff& op, size_t row, CompareMode mode, double tolerance) {
  const double error = RowError(op, row, mode);
  if (error == 0) return 0;
  const ItemView &a = op.target[row], &b = op.golden[static_cast<size_t>(op.rows[row].golden)];
  const double own = std::max(Tolerance(a.dtype), Tolerance(b.dtype));
  // Limits of a dtype travel as Python's floats.
  const bool scalar = a.dtype == "<class 'float'>" && b.dtype == a.dtype;
  if (own == 0 && !scalar) tolerance = 0;
  if (own > 0 && a.state == ItemState::kParameter) tolerance = own;
  return tolerance == 0 ? std::numeric_limits<double>::infinity() : error / tolerance;
}

bool IsResult(ItemState state) {
  return state == ItemState::kOutput || state == ItemState::kParameterGrad || state == ItemState::kDebug;
}

bool DTypeChanges(const OpDiff& op, size_t i) {
  if (op.rows[i].golden == kNoItem) return false;
  const ItemView &a = op.target[i], &b = op.golden[static_cast<size_t>(op.rows[i].golden)];
  return !SameDType(a.dtype, b.dtype) && a.shape == b.shape && StartsWith(a.shape, "[") && !StartsWith(a.dtype, "<class") &&
         !StartsWith(b.dtype, "<class");
}

OpDistance DistanceOf(const OpDiff& op, CompareMode mode) {
  constexpr double kMost = std::numeric_limits<float>::max();
  OpDistance out;
  const double tolerance = OpTolerance(op);
  out.tolerance = static_cast<float>(tolerance);
  for (size_t i = 0; i < op.rows_used; ++i) {
    const bool result = IsResult(op.target[i].state);
    out.dtypes = out.dtypes || DTypeChanges(op, i);
    float& side = result ? out.output : out.input;
    const double distance = RowDistance(op, i, mode, tolerance);
    side = std::max(side, distance > kMost ? std::numeric_limits<float>::infinity() : static_cast<float>(distance));
    if (mode == CompareMode::kChecksum && !result && op.rows[i].golden != kNoItem) {
      out.blind = out.blind || op.target[i].checksum == "0x0000000000000000";
    }
  }
  return out;
}

}  // namespace msprobe
