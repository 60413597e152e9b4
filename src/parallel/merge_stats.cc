#include "parallel/merge_stats.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "base/text.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr double kSumTolerance = 1e-6;  // sums in another order
constexpr std::array<std::string_view, 10> kDtypes{"torch.int8",    "torch.int32",   "torch.int64",   "torch.bfloat16",
                                                   "torch.float16", "torch.float32", "torch.float64", "Float16",
                                                   "Float32",       "BFloat16"};

bool SameNumber(const StatNumber& a, const StatNumber& b) {
  return !a.given() || !b.given() ||
         (a.kind == StatNumber::Kind::kInt && b.kind == a.kind ? a.i == b.i : a.value() == b.value());
}

bool SameSum(const StatNumber& a, const StatNumber& b) {
  if (!a.given() || !b.given()) return true;
  const double diff = std::fabs(a.value() - b.value());
  if (std::isnan(diff)) return std::isnan(a.value()) && std::isnan(b.value());
  if (std::isinf(diff)) return std::isinf(a.value()) && std::isinf(b.value());
  return a.value() == 0 ? diff < kSumTolerance : std::fabs(diff / a.value()) < kSumTolerance;
}

using Field = StatNumber TensorStats::*;

bool AllGiven(const std::vector<TensorStats>& parts, Field f) {
  return std::all_of(parts.begin(), parts.end(), [&](const TensorStats& p) { return (p.*f).given(); });
}

StatNumber Extreme(const std::vector<TensorStats>& parts, Field f, bool largest) {
  StatNumber best = parts[0].*f;
  for (const TensorStats& p : parts) {
    const StatNumber& v = p.*f;
    if (std::isnan(best.value())) break;
    if (std::isnan(v.value()) || (largest ? v.value() > best.value() : v.value() < best.value())) best = v;
  }
  return best;
}

bool EqualElements(const std::vector<TensorStats>& parts) {
  return std::all_of(parts.begin(), parts.end(),
                     [&](const TensorStats& p) { return p.elements < 0 || p.elements == parts[0].elements; });
}

double Mean(const std::vector<TensorStats>& parts) {
  double sum = 0, count = 0;
  const bool equal = EqualElements(parts);
  for (const TensorStats& p : parts) {
    sum += equal ? p.mean.value() : p.mean.value() * p.elements;
    count += equal ? 1 : p.elements;
  }
  return count == 0 ? parts[0].mean.value() : sum / count;
}

double Norm(const std::vector<TensorStats>& parts) {
  double sum = 0;
  for (const TensorStats& p : parts) sum += std::pow(p.norm.value(), 2.0);
  return std::pow(sum, 0.5);
}

StatNumber Rounded(double v, std::string_view dtype, const std::vector<TensorStats>& parts, Field f) {
  const DType type = ParseDType(dtype);
  StatNumber out;
  out.kind = StatNumber::Kind::kDouble;
  out.d = v;
  const bool low = std::all_of(parts.begin(), parts.end(), [&](const TensorStats& p) {
    const double part = (p.*f).value();
    return std::isnan(part) || NearestOf(type, part) == part;
  });
  const double rounded = NearestOf(type, v);
  if (low && std::isfinite(rounded)) out.d = rounded;
  return out;
}

std::string List(const std::vector<TensorStats>& parts, Field f, const char* between, const char* after = "") {
  std::string out;
  for (const TensorStats& p : parts) out += (out.empty() ? "" : between) + (p.*f).Text() + after;
  return out;
}

std::string MeanFormula(const std::vector<TensorStats>& parts) {
  if (EqualElements(parts)) return fmt::format("({}) / {}", List(parts, &TensorStats::mean, " + "), parts.size());
  std::string sum;
  double count = 0;
  for (const TensorStats& p : parts) {
    sum += fmt::format("{}{} * {:.0f}", sum.empty() ? "" : " + ", p.mean.Text(), p.elements);
    count += p.elements;
  }
  return fmt::format("({}) / {:.0f}", sum, count);
}

}  // namespace

StatNumber StatNumber::Of(const JsonValue* v) {
  StatNumber out;
  if (!v || !v->IsNumber()) return out;
  if (v->IsInt()) {
    out.kind = Kind::kInt;
    out.i = v->Int();
  } else {
    out.kind = Kind::kDouble;
    out.d = v->Number();
  }
  return out;
}

std::string StatNumber::Text() const {
  return kind == Kind::kInt ? std::to_string(i) : kind == Kind::kDouble ? PyRepr(d) : "None";
}

TensorStats TensorStats::Of(const JsonValue& leaf) {
  TensorStats out{StatNumber::Of(leaf.Find("Max")), StatNumber::Of(leaf.Find("Min")), StatNumber::Of(leaf.Find("Mean")),
                  StatNumber::Of(leaf.Find("Norm")), -1};
  const JsonValue* shape = leaf.Find("shape");
  if (!shape || !shape->IsArray()) return out;
  out.elements = 1;
  for (const JsonValue& size : shape->Items()) out.elements *= size.IsNumber() ? size.Number() : 1;
  return out;
}

double Amplitude(const TensorStats& s) { return std::max(std::fabs(s.max.value()), std::fabs(s.min.value())); }

bool IsMergedDtype(std::string_view dtype) { return std::find(kDtypes.begin(), kDtypes.end(), dtype) != kDtypes.end(); }

bool SameStats(const TensorStats& a, const TensorStats& b) {
  return SameNumber(a.max, b.max) && SameNumber(a.min, b.min) && SameSum(a.mean, b.mean) && SameSum(a.norm, b.norm);
}

TensorStats MergeParts(const std::vector<TensorStats>& parts, std::string_view dtype, std::string_view key,
                       std::vector<std::string>* info) {
  TensorStats out = parts[0];
  if (parts.size() < 2) return out;
  out.elements = 0;
  for (const TensorStats& p : parts) out.elements = p.elements < 0 || out.elements < 0 ? -1 : out.elements + p.elements;
  const auto note = [&](const char* name, const std::string& formula, const StatNumber& result) {
    if (!info) return;
    info->push_back(fmt::format("The {} value merging method for {} is: {} = {}", name, key, formula, result.Text()));
  };
  if (AllGiven(parts, &TensorStats::max)) {
    out.max = Extreme(parts, &TensorStats::max, true);
    note("Max", "max(" + List(parts, &TensorStats::max, ", ") + ")", out.max);
  }
  if (AllGiven(parts, &TensorStats::min)) {
    out.min = Extreme(parts, &TensorStats::min, false);
    note("Min", "min(" + List(parts, &TensorStats::min, ", ") + ")", out.min);
  }
  if (AllGiven(parts, &TensorStats::mean)) {
    out.mean = Rounded(Mean(parts), dtype, parts, &TensorStats::mean);
    note("Mean", MeanFormula(parts), out.mean);
  }
  if (AllGiven(parts, &TensorStats::norm)) {
    out.norm = Rounded(Norm(parts), dtype, parts, &TensorStats::norm);
    note("Norm", "(" + List(parts, &TensorStats::norm, " + ", " ** 2") + ") ** 0.5", out.norm);
  }
  return out;
}

}  // namespace msprobe
