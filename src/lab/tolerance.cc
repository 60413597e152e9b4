#include "lab/tolerance.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <string_view>

#include "base/message.h"
#include "base/text.h"
#include "lab/ulp_table.h"
#include "ops/op_traits.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr double kTail = 4, kSingle = 0x1p-24;  // as python/msprobe/_replay.py has them
constexpr int64_t kMostSize = int64_t{1} << 40;

/// A number of a tolerance, rounded up to three digits.
std::string UpText(double v) {
  if (v == 0) return "0";
  const double unit = std::pow(10.0, std::floor(std::log10(v)) - 2);
  return fmt::format("{:.2e}", std::ceil(v / unit * (1 - 1e-12)) * unit);
}

std::string_view NameOf(std::string_view op) { return op.substr(op.rfind('.') + 1); }

/// How a test calls it.
std::string CallOf(std::string_view op) {
  if (op.find('.') != std::string_view::npos) return std::string(op);
  const Arithmetic kind = TraitsOf(op).arithmetic;
  const bool functional = op == "linear" || StartsWith(op, "conv") || EndsWith(op, "pool1d") ||
                          EndsWith(op, "pool2d") || kind == Arithmetic::kNormalise;
  return (functional ? "torch.nn.functional." : "torch.") + std::string(op);
}

/// The terms of each sum: elements of the filter of a convolution, the size that a product sums over, all elements of
/// a sum. 0 where the shapes do not say.
double TermsOf(const ToleranceQuery& query, Arithmetic kind) {
  if (query.terms > 0) return static_cast<double>(query.terms);
  if (query.shapes.empty()) return 0;
  const std::vector<int64_t>&first = query.shapes.front(), &last = query.shapes.back();
  double product = 1;
  if (StartsWith(NameOf(query.op), "conv") && last.size() > 1) {
    for (size_t i = 1; i < last.size(); ++i) product *= static_cast<double>(last[i]);
    return product;
  }
  if (kind == Arithmetic::kProduct || kind == Arithmetic::kNormalise || kind == Arithmetic::kSoftmax)
    return first.empty() ? 1 : static_cast<double>(first.back());
  for (const int64_t size : first) product *= static_cast<double>(size);
  return product;
}

ToleranceLine OfFunction(const ToleranceQuery& query, const FunctionBound& bound) {
  const double eps = InfoOf(query.dtype).eps();
  const std::string of = query.backward ? "of the gradient that comes in" : "of the largest input";
  ToleranceLine out;
  out.rule = query.backward ? "saved" : "ulp";
  std::string atol = "0";
  out.why = fmt::format("{:.3g} ulp", bound.ulps);
  if (bound.share > 0) {
    const std::string size = query.backward ? "gradient" : "x";
    atol = fmt::format("{} * {}.abs().max().item()", UpText(bound.share * eps / 2), size);
    out.why += fmt::format(", or {:.3g} roundings {} where small results lose digits", bound.share, of);
  }
  out.line = fmt::format("torch.testing.assert_close(actual.double(), expected, rtol={}, atol={})",
                         UpText(bound.ulps * eps), atol);
  return out;
}

ToleranceLine OfSum(const ToleranceQuery& query, double terms) {
  const double eps = InfoOf(query.dtype).eps();
  ToleranceLine out;
  out.rule = "terms", out.terms = terms;
  const double share = kTail * std::min(eps / 2, kSingle) * std::sqrt(terms);
  out.line = fmt::format(
      "assert ((actual.double() - expected).abs() <= {} * expected.abs() + {} * {}(*(t.double().abs() for t in "
      "inputs))).all()",
      UpText(eps), UpText(share), CallOf(query.op));
  out.why = fmt::format("1 ulp, and {:g} sqrt(K) roundings of the sum of the absolute values of K = {:g} terms", kTail,
                        terms);
  return out;
}

ToleranceLine OfNorm(const ToleranceQuery& query, Arithmetic kind, double terms) {
  const double eps = InfoOf(query.dtype).eps(), unit = eps / 2;
  double limit = eps + kTail * std::min(unit, kSingle) * std::sqrt(terms);
  if (kind == Arithmetic::kAttention) limit += kTail * unit * std::sqrt(8.0);
  ToleranceLine out;
  out.rule = "norm", out.terms = terms;
  out.line = fmt::format("assert (actual.double() - expected).norm() <= {} * expected.norm()", UpText(limit));
  out.why = fmt::format(
      "1 ulp, and {:g} sqrt(K) roundings for K = {:g}, condition 1; inputs that cancel out, or "
      "softmax of large ones, take more: acc_check measures the condition of a recorded call",
      kTail, terms);
  return out;
}

}  // namespace

StatusOr<std::vector<int64_t>> ParseShape(const std::string& text) {
  std::vector<int64_t> out;
  for (size_t at = 0; at <= text.size();) {
    const size_t end = std::min(text.find('x', at), text.size());
    int64_t size = 0;
    const auto [rest, error] = std::from_chars(text.data() + at, text.data() + end, size);
    if (error != std::errc() || rest != text.data() + end || size < 1 || size > kMostSize)
      return UsageError(Msg("a shape is sizes such as 64x512, not {}", OneLine(text)));
    out.push_back(size);
    at = end + 1;
  }
  return out;
}

StatusOr<ToleranceLine> ToleranceOf(const ToleranceQuery& query) {
  const std::string_view name = NameOf(query.op);
  if (const auto bound = MeasuredBound(name, query.backward, query.dtype)) return OfFunction(query, *bound);
  const Arithmetic kind = TraitsOf(name).arithmetic;
  if (query.backward)
    return UsageError(
        Msg("the gradient of {} was not measured: acc_check judges that of a recorded call", OneLine(query.op)));
  if (kind == Arithmetic::kCopy) {
    ToleranceLine out;
    out.rule = "exact";
    out.line = "torch.testing.assert_close(actual, expected.to(actual.dtype), rtol=0, atol=0)";
    out.why = "nothing is rounded but the result";
    return out;
  }
  if (kind == Arithmetic::kUnknown || kind == Arithmetic::kElementwise || kind == Arithmetic::kFunction)
    return UsageError(Msg("no bound is known for {}: acc_check judges a recorded call of it", OneLine(query.op)));
  const double terms = TermsOf(query, kind);
  if (terms == 0)
    return UsageError(Msg("the bound of {} depends on how much it sums up: give --shape 64x512,512x32 or --terms 512",
                          OneLine(query.op)));
  const bool linear = kind == Arithmetic::kProduct || name == "sum" || name == "mean" || name == "nansum" ||
                      name == "nanmean" || name == "cumsum" || name == "trace";
  return linear ? OfSum(query, terms) : OfNorm(query, kind, terms);
}

}  // namespace msprobe
