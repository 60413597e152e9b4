// The metrics as plainly as they can be written, element by element; for the tests of the kernels.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "tensor/kernels/metrics.h"
#include "tensor/kernels/stats_kernels.h"

namespace msprobe::plain {

struct PlainValue {
  double re = 0, im = 0;
  __int128 whole = 0;  // integers
  bool finite() const { return std::isfinite(re) && std::isfinite(im); }
};

template <typename T>
T Load(const void* p, size_t i = 0) {
  T v;
  std::memcpy(&v, static_cast<const char*>(p) + i * sizeof v, sizeof v);
  return v;
}

template <typename T>
PlainValue Whole(const void* p) {
  const T v = Load<T>(p);
  return {static_cast<double>(v), 0, v};
}

inline PlainValue ValueAt(DType t, const void* p) {
  switch (t) {
    case DType::kFloat32: return {Load<float>(p)};
    case DType::kFloat64: return {Load<double>(p)};
    case DType::kFloat16: return {stats::HalfToFloat(Load<uint16_t>(p))};
    case DType::kBFloat16: return {stats::BFloatToFloat(Load<uint16_t>(p))};
    case DType::kInt8: return Whole<int8_t>(p);
    case DType::kInt16: return Whole<int16_t>(p);
    case DType::kInt32: return Whole<int32_t>(p);
    case DType::kInt64: return Whole<int64_t>(p);
    case DType::kUInt8: return Whole<uint8_t>(p);
    case DType::kUInt16: return Whole<uint16_t>(p);
    case DType::kUInt32: return Whole<uint32_t>(p);
    case DType::kUInt64: return Whole<uint64_t>(p);
    case DType::kBool: return {Load<uint8_t>(p) ? 1.0 : 0.0, 0, Load<uint8_t>(p) ? 1 : 0};
    case DType::kComplex32: return {stats::HalfToFloat(Load<uint16_t>(p)), stats::HalfToFloat(Load<uint16_t>(p, 1))};
    case DType::kComplex64: return {Load<float>(p), Load<float>(p, 1)};
    case DType::kComplex128: return {Load<double>(p), Load<double>(p, 1)};
    default: return {stats::Float8ToFloat(t, Load<uint8_t>(p))};
  }
}

/// In C order.
inline std::vector<const char*> Elements(const TensorView& t, int64_t count) {
  std::vector<const char*> out;
  for (int64_t i = 0; i < count; ++i) {
    int64_t rest = i, offset = 0, step = 1;
    for (int d = t.ndim - 1; d >= 0; --d) {
      offset += rest % t.shape[d] * (t.strides ? t.strides[d] : step);
      rest /= t.shape[d];
      step *= t.shape[d];
    }
    out.push_back(static_cast<const char*>(t.data) + offset * static_cast<int64_t>(ElementSize(t.dtype)));
  }
  return out;
}

inline void NoteKind(const PlainValue& v, NonFinite* to) {
  if (std::isnan(v.re) || std::isnan(v.im)) {
    ++to->nan;
  } else if (!v.finite()) {
    ++(std::max(v.re, v.im) > std::numeric_limits<double>::max() ? to->plus_inf : to->minus_inf);
  }
}

inline bool SamePart(double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); }

/// From the sums of the squares and of the products.
inline void SetCosine(long double tt, long double gg, long double tg, TensorMetrics* out) {
  constexpr long double kZero = 0x1p-52L;
  const long double tn = sqrtl(tt), gn = sqrtl(gg);
  out->cosine_state = CosineState::kNumber;
  if (out->count == 1) {
    out->cosine_state = CosineState::kLengthOne;
  } else if (tn <= kZero || gn <= kZero) {
    out->cosine_state = tn > kZero   ? CosineState::kGoldenZero
                        : gn > kZero ? CosineState::kTargetZero
                                     : CosineState::kBothZero;
  } else {
    out->cosine = static_cast<double>(tg / tn / gn);
  }
}

/// Without the means of squares and the rounding of single elements; `worst` has all elements that differ.
inline TensorMetrics Compare(const TensorView& target, const TensorView& golden) {
  TensorMetrics out;
  out.state = PairState::kCompared;
  out.count = 1;
  for (int d = 0; d < target.ndim; ++d) out.count *= target.shape[d];
  const auto ts = Elements(target, out.count), gs = Elements(golden, out.count);
  const auto whole = [](DType t) { return IsInteger(t) || t == DType::kBool; };
  const auto brief = [](DType t) { return IsFloating(t) && t != DType::kFloat64; };
  const bool wholes = whole(target.dtype) && whole(golden.dtype);
  const bool briefs = brief(target.dtype) && brief(golden.dtype);
  const bool complex = IsComplex(target.dtype) || IsComplex(golden.dtype);
  long double tt = 0, gg = 0, tg = 0, dd = 0;
  out.identical = target.dtype == golden.dtype;
  for (int64_t i = 0; i < out.count; ++i) {
    const auto at = static_cast<size_t>(i);
    PlainValue t = ValueAt(target.dtype, ts[at]), g = ValueAt(golden.dtype, gs[at]);
    out.identical = out.identical && std::memcmp(ts[at], gs[at], ElementSize(target.dtype)) == 0;
    NoteKind(t, &out.target);
    NoteKind(g, &out.golden);
    WorstElement element{i, 0, 0, t.re, g.re};
    const bool finite = t.finite() && g.finite();
    if (!finite) {
      // A part that is finite on both sides tells nothing beside one that is not.
      const auto differs = [](double a, double b) {
        return !(std::isfinite(a) && std::isfinite(b)) && !SamePart(a, b);
      };
      const bool differ = differs(t.re, g.re) || differs(t.im, g.im);
      out.differ += differ;
      out.equal += SamePart(t.re, g.re) && SamePart(t.im, g.im);
      if (differ) element.abs_err = element.relative = std::numeric_limits<double>::infinity();
      t = g = PlainValue();
    } else {
      out.equal += wholes ? t.whole == g.whole
                          : t.re == g.re && t.im == g.im && std::signbit(t.re) == std::signbit(g.re) &&
                                std::signbit(t.im) == std::signbit(g.im);
      double relative = 0;
      if (wholes) {
        element.abs_err = static_cast<double>(t.whole > g.whole ? t.whole - g.whole : g.whole - t.whole);
      } else {
        element.abs_err = complex ? std::hypot(t.re - g.re, t.im - g.im) : std::fabs(t.re - g.re);
      }
      if (briefs) {
        float a = static_cast<float>(t.re), b = static_cast<float>(g.re);
        if (b == 0) a += std::numeric_limits<float>::epsilon(), b += std::numeric_limits<float>::epsilon();
        relative = std::fabs((a - b) / b);
      } else if (const double size = complex ? std::hypot(g.re, g.im) : std::fabs(g.re); size == 0) {
        const double e = std::numeric_limits<double>::epsilon(), re = (t.re + e) - e;
        relative = (complex ? std::hypot(re, t.im) : std::fabs(re)) / e;
      } else {
        relative = element.abs_err / size;
      }
      element.relative = relative;
      out.max_abs_err = std::max(out.max_abs_err, element.abs_err);
    }
    const double relative = finite ? element.relative : 0;
    out.max_relative_err = std::max(out.max_relative_err, relative);
    out.below_thousandth += briefs ? static_cast<float>(relative) < 0.001f : relative < 0.001;
    out.below_five_thousandths += briefs ? static_cast<float>(relative) < 0.005f : relative < 0.005;
    tt += static_cast<long double>(t.re) * t.re + static_cast<long double>(t.im) * t.im;
    gg += static_cast<long double>(g.re) * g.re + static_cast<long double>(g.im) * g.im;
    tg += static_cast<long double>(t.re) * g.re + static_cast<long double>(t.im) * g.im;
    if (finite) dd += static_cast<long double>(element.abs_err) * element.abs_err;
    if (element.abs_err > 0) out.worst.push_back(element);
  }
  std::stable_sort(out.worst.begin(), out.worst.end(),
                   [](const WorstElement& a, const WorstElement& b) { return a.abs_err > b.abs_err; });
  out.euc_dist = static_cast<double>(sqrtl(dd));
  SetCosine(tt, gg, tg, &out);
  return out;
}

}  // namespace msprobe::plain
