// The rounding error that an op may have, from its kind, the shapes and the statistics of its tensors. Bounds follow
// Higham, Accuracy and Stability of Numerical Algorithms, chapters 3 and 4; the square root of the length is that of
// Higham and Mary, A New Approach to Probabilistic Rounding Error Analysis.
#include <algorithm>
#include <cmath>

#include "base/text.h"
#include "compare/round_off/fills.h"
#include "compare/round_off/ruler.h"
#include "ops/op_name.h"
#include "ops/op_traits.h"
#include "tensor/kernels/dtype.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr double kFloat = InfoOf(DType::kFloat32).unit(), kDouble = InfoOf(DType::kFloat64).unit();
constexpr double kTail = 4;             // the largest of many independent errors is some standard deviations large
constexpr double kMostCondition = 1e4;  // beyond this statistics say too little
constexpr double kFunctionUlps = 4;     // elementary functions of different libraries
constexpr double kUnknownOps = 8;       // rounding steps in a row in code that is not known

double NumberOr0(const StatValue& v) {
  const double d = v.IsNumber() ? std::fabs(v.AsDouble()) : 0;
  return std::isfinite(d) ? d : 0;
}

/// A tensor as its statistics show it.
struct Amount {
  double numel = 1, first = 1, last = 1, longest = 1;
  double amplitude = 0, rms = 0, mean = 0;
};

Amount AmountOf(const ItemView& item) {
  Amount a;
  double value = 0;
  bool digits = false, any = false;
  for (const char c : item.shape) {
    if (c >= '0' && c <= '9') {
      value = value * 10 + (c - '0');
      digits = true;
    } else if (digits) {
      if (!any) a.first = value;
      any = true;
      a.numel *= value;
      a.last = value;
      a.longest = std::max(a.longest, value);
      value = 0;
      digits = false;
    }
  }
  a.numel = std::max(a.numel, 1.0);
  a.amplitude = AmplitudeWithoutFill(item);
  a.rms = std::min(NumberOr0(item.stats[kNorm]) / std::sqrt(a.numel), a.amplitude);
  if (a.rms == 0) a.rms = a.amplitude;
  a.mean = std::min(NumberOr0(item.stats[kMean]), a.rms);
  return a;
}

/// Smallest magnitude over largest; 0 where values of both signs may be anything between.
double NearestZero(const ItemView& v) {
  if (!v.stats[kMax].IsNumber() || !v.stats[kMin].IsNumber()) return 0;
  const double most = v.stats[kMax].AsDouble(), least = v.stats[kMin].AsDouble();
  if (!(most * least > 0)) return 0;
  const double a = std::fabs(most), b = std::fabs(least);
  return std::min(a, b) / std::max(a, b);
}

bool IsTensor(const ItemView& v) { return StartsWith(v.shape, "[") && ParseDType(v.dtype) != DType::kUnknown; }

/// The op's floating inputs, and one of its results, on the golden side, which is that of a run that is right.
struct Tensors {
  std::vector<Amount> in;
  Amount out;
  double unit = 0;         // of the coarsest dtype of either side
  bool mixed = false;      // the sides have different dtypes
  double accumulator = 0;  // sums of halves are kept in float32
  double operands = 0;     // largest amplitude of the inputs
  double in_rms = 0;
  double nearest_zero = 0;  // of the last input that has one sign, its smallest magnitude over its largest
};

Tensors TensorsOf(const OpDiff& op, size_t row) {
  Tensors t;
  for (size_t i = 0; i < op.rows_used; ++i) {
    const int g = op.rows[i].golden;
    if (g == kNoItem) continue;
    const ItemView &a = op.target[i], &b = op.golden[static_cast<size_t>(g)];
    const double unit = std::max(InfoOf(ParseDType(a.dtype)).unit(), InfoOf(ParseDType(b.dtype)).unit());
    if (unit == 0 || !IsTensor(b)) continue;
    if (IsResult(b.state) && i != row) continue;
    t.unit = std::max(t.unit, unit);
    t.mixed = t.mixed || !SameDType(a.dtype, b.dtype);
    const Amount amount = AmountOf(b);
    if (i == row) {
      t.out = amount;
      continue;
    }
    t.in.push_back(amount);
    t.operands = std::max(t.operands, amount.amplitude);
    t.in_rms = std::max(t.in_rms, amount.rms);
    t.nearest_zero = NearestZero(b);
  }
  t.accumulator = std::min(t.unit, kFloat);
  return t;
}

double Ratio(double a, double b) { return b > 0 ? std::min(a / b, kMostCondition) : a > 0 ? kMostCondition : 1; }

/// Number of terms in each sum of products.
double ProductLength(const Tensors& t, std::string_view op) {
  if (t.in.size() < 2) return t.in.empty() ? 1 : t.in[0].last;
  const bool conv = Contains(ApiOrClassOf(op), "onv");
  // A kernel of shape [out, in, ...] sums over all but the first; a linear layer over the last dimension.
  if (conv) return std::max(1.0, t.in[1].numel / std::max(1.0, t.in[1].first));
  return std::max({1.0, t.in[0].last, t.in[1].longest == t.in[0].last ? t.in[0].last : 1.0});
}

struct Sum {
  double length = 1, condition = 1;
};

/// Length and condition of the sums in a forward op.
Sum SumOf(Arithmetic kind, const Tensors& t, std::string_view op) {
  const Amount none;
  const Amount& x = t.in.empty() ? none : t.in[0];
  switch (kind) {
    case Arithmetic::kCopy: return {0, 1};
    case Arithmetic::kElementwise: return {1, Ratio(t.operands, t.out.amplitude)};
    case Arithmetic::kFunction: return {kFunctionUlps, std::max(1.0, std::min(t.operands, kMostCondition))};
    case Arithmetic::kProduct: {
      const double length = ProductLength(t, op);
      const double other = t.in.size() > 1 ? t.in[1].rms : 1;
      return {length, Ratio(std::sqrt(length) * x.rms * other, t.out.rms)};
    }
    case Arithmetic::kReduction: {
      const double length = std::max(1.0, x.numel / t.out.numel);
      // A mean is the sum over its length: the same relative error, from smaller numbers.
      const bool mean = Contains(ApiOrClassOf(op), "ean") || Contains(ApiOrClassOf(op), "loss") ||
                        Contains(ApiOrClassOf(op), "Loss") || Contains(ApiOrClassOf(op), "ool");
      return {length, Ratio(std::sqrt(length) * x.rms / (mean ? length : 1), t.out.rms)};
    }
    case Arithmetic::kNormalise: {
      const double spread = std::sqrt(std::max(0.0, x.rms * x.rms - x.mean * x.mean));
      return {std::max(x.last, x.numel / (x.first * x.last)), Ratio(x.rms, spread)};
    }
    case Arithmetic::kSoftmax: return {x.longest, std::max(1.0, std::min(x.amplitude, kMostCondition))};
    case Arithmetic::kAttention: return {2 * x.longest, 16};
    case Arithmetic::kUnknown: break;
  }
  double longest = 1;
  for (const Amount& a : t.in) longest = std::max(longest, a.longest);
  longest = std::max(longest, t.out.longest);
  return {longest * kUnknownOps, std::max(1.0, Ratio(t.operands, t.out.amplitude))};
}

/// Gradients sum over everything that the forward spread, mostly the tokens of a batch.
Sum BackwardSumOf(Arithmetic kind, const Tensors& t) {
  double numel = 1, longest = 1;
  for (const Amount& a : t.in) {
    numel = std::max(numel, a.numel);
    longest = std::max({longest, a.longest, a.numel / a.last});
  }
  const bool simple = kind == Arithmetic::kCopy || kind == Arithmetic::kElementwise;
  // Broadcast operands get sums, too.
  const double length = simple ? std::max(1.0, numel / t.out.numel) : longest;
  // Modules give gradients of their inputs, which sum over little.
  if (kind == Arithmetic::kUnknown && 2 * t.out.numel >= numel)
    return {length, std::max(1.0, Ratio(t.in_rms, t.out.rms))};
  const double condition = std::max(1.0, Ratio(std::sqrt(length) * t.in_rms, t.out.rms));
  return {length, simple ? condition : std::min(4 * condition, kMostCondition)};
}

/// Where an op divides, errors of small divisors are large ones of the quotient.
bool Divides(std::string_view op) {
  const std::string_view api = ApiOrClassOf(op);
  return Contains(api, "div") || Contains(api, "rsqrt") || Contains(api, "reciprocal") || Contains(api, "log");
}

/// So many terms at least make a sum.
constexpr double kFewTerms = 8;

bool IsOneDimensional(std::string_view shape) { return shape.find(',') == std::string_view::npos; }

/// The gradients of queries and keys are differences of what that of the values is made of, too: where a row gives all
/// to one key, only the rounding of these is left.
bool IsLostInResults(const OpDiff& op, size_t row) {
  const auto amplitude = [&](size_t i) {
    const int g = op.rows[i].golden;
    return std::max(Amplitude(op.target[i]), g == kNoItem ? 0 : Amplitude(op.golden[static_cast<size_t>(g)]));
  };
  double largest = 0;
  for (size_t i = 0; i < op.rows_used; ++i) {
    if (op.target[i].state == ItemState::kOutput && IsTensor(op.target[i])) largest = std::max(largest, amplitude(i));
  }
  const double own = amplitude(row);
  return own > 0 && std::isfinite(largest) && own <= OpTolerance(op) * largest;
}

}  // namespace

bool CancelsOut(const OpDiff& op, size_t row) {
  const ItemView& item = op.target[row];
  const int g = op.rows[row].golden;
  if (item.state != ItemState::kOutput || g == kNoItem || !Contains(op.op, ".backward") || !IsTensor(item))
    return false;
  const ItemView& partner = op.golden[static_cast<size_t>(g)];
  const Arithmetic kind = ArithmeticOf(op.op);
  if (kind == Arithmetic::kAttention) return IsLostInResults(op, row);
  const bool broadcast = kind == Arithmetic::kCopy || kind == Arithmetic::kElementwise;
  const bool bias = kind == Arithmetic::kProduct && IsOneDimensional(item.shape);
  if (!broadcast && !bias) return false;
  const Tensors t = TensorsOf(op, row);
  double numel = 0;
  for (const Amount& a : t.in) numel = std::max(numel, a.numel);
  const double terms = numel / t.out.numel;
  if (terms < kFewTerms || t.unit == 0) return false;
  const double largest = std::max(AmountOf(item).amplitude, AmountOf(partner).amplitude);
  return largest > 0 && largest <= OpTolerance(op) * std::sqrt(terms) * t.in_rms;
}

RoundOff RoundOffOf(const OpDiff& op, size_t row) {
  const Tensors t = TensorsOf(op, row);
  RoundOff out;
  if (t.unit == 0) return out;
  const Arithmetic kind = ArithmeticOf(op.op);
  const Sum sum = Contains(op.op, ".forward") ? SumOf(kind, t, op.op) : BackwardSumOf(kind, t);
  const double condition = std::max(1.0, sum.condition);
  // Unknown code rounds to the dtype at each step.
  const double inner = kind == Arithmetic::kUnknown || kind == Arithmetic::kAttention ? t.unit : t.accumulator;
  const double sums = kTail * inner * condition;
  // Both runs round their result: one distance of neighbours.
  const double result = sum.length == 0 && !t.mixed ? 0 : 2 * t.unit;
  out.expected = result + sums * std::sqrt(sum.length);
  out.worst = 2 * (result + sums * sum.length);
  out.condition = condition;
  if (Divides(op.op)) {
    const double small = t.nearest_zero > 0 ? 1 / t.nearest_zero : kMostCondition;
    out.condition = std::max(condition, std::min(small, kMostCondition));
  }
  return out;
}

}  // namespace msprobe
