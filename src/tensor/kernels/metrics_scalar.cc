// The kernels of machines without vectors, whose bits those of the vector kernels are, and the kernels of integers of
// 64 bits and of complex numbers, which all tables share.
#include <cmath>
#include <cstring>

#include "tensor/kernels/metrics_kernels.h"
#include "tensor/kernels/stats_kernels.h"

// clang-format off
#include "tensor/kernels/metrics_kernel-inl.h"
// clang-format on

namespace msprobe::metrics {
namespace {

struct Plain {
  struct F {
    float v[kGroup];
  };
  struct D {
    double v[kLanes];
  };
  template <class R, typename Of>
  static R Each(const Of& of) {
    R r;
    for (size_t i = 0; i < sizeof r.v / sizeof r.v[0]; ++i) r.v[i] = of(i);
    return r;
  }
  static F Set(float v) {
    return Each<F>([&](size_t) { return v; });
  }
  static D Set(double v) {
    return Each<D>([&](size_t) { return v; });
  }
  static F LoadFloat(const void* p) {
    F r;
    std::memcpy(&r, p, sizeof r);
    return r;
  }
  static D LoadDouble(const void* p) {
    D r;
    std::memcpy(&r, p, sizeof r);
    return r;
  }
  template <float (*convert)(uint16_t)>
  static F LoadShort(const void* p) {
    uint16_t bits[kGroup];
    std::memcpy(bits, p, sizeof bits);
    return Each<F>([&](size_t i) { return convert(bits[i]); });
  }
  static F LoadBFloat(const void* p) { return LoadShort<stats::BFloatToFloat>(p); }
  static F LoadHalf(const void* p) { return LoadShort<stats::HalfToFloat>(p); }
  static F Load(const float* p) { return LoadFloat(p); }
  static D Load(const double* p) { return LoadDouble(p); }
  static void Store(void* p, const F& v) { std::memcpy(p, &v, sizeof v); }
  static void Store(void* p, const D& v) { std::memcpy(p, &v, sizeof v); }
  static D Low(const F& v) {
    return Each<D>([&](size_t i) { return static_cast<double>(v.v[i]); });
  }
  static D High(const F& v) {
    return Each<D>([&](size_t i) { return static_cast<double>(v.v[i + kLanes]); });
  }
  template <class R>
  static R Add(const R& a, const R& b) {
    return Each<R>([&](size_t i) { return a.v[i] + b.v[i]; });
  }
  template <class R>
  static R Sub(const R& a, const R& b) {
    return Each<R>([&](size_t i) { return a.v[i] - b.v[i]; });
  }
  template <class R>
  static R Mul(const R& a, const R& b) {
    return Each<R>([&](size_t i) { return a.v[i] * b.v[i]; });
  }
  template <class R>
  static R Div(const R& a, const R& b) {
    return Each<R>([&](size_t i) { return a.v[i] / b.v[i]; });
  }
  static D Fma(const D& a, const D& b, const D& c) { return Add(Mul(a, b), c); }
  template <class R>
  static R Abs(const R& a) {
    return Each<R>([&](size_t i) { return a.v[i] < 0 ? -a.v[i] : a.v[i]; });
  }
  template <class R>
  static R Max(const R& a, const R& b) {
    return Each<R>([&](size_t i) { return a.v[i] > b.v[i] ? a.v[i] : b.v[i]; });
  }
  static D MaxAbs(const D& a, const D& most) {
    const D absolute = Abs(a);
    return Each<D>([&](size_t i) { return absolute.v[i] > most.v[i] ? absolute.v[i] : most.v[i]; });
  }
  static D TwoOverPower(const D& a) {
    return Each<D>([&](size_t i) {
      const auto power = __builtin_bit_cast(uint64_t, a.v[i]) & BitsOf<double>::kInfinity;
      return __builtin_bit_cast(double, kTwoByPower - power);
    });
  }
  static bool AnyAbove(const D& a, const D& b) {
    bool any = false;
    for (size_t i = 0; i < kLanes; ++i) any |= a.v[i] > b.v[i];
    return any;
  }
  template <class R>
  static bool AllFinite(const R& a, const R& b) {
    bool all = true;
    for (size_t i = 0; i < sizeof a.v / sizeof a.v[0]; ++i) {
      // (v - v) is NaN where v is not finite
      const auto t = a.v[i] - a.v[i], g = b.v[i] - b.v[i];
      all &= t == t && g == g;
    }
    return all;
  }
  template <class R>
  static int64_t NoCounts(const R&) {
    return 0;
  }
  template <class R>
  static int64_t CountEqual(int64_t n, const R& a, const R& b) {
    for (size_t i = 0; i < sizeof a.v / sizeof a.v[0]; ++i) {
      n += a.v[i] == b.v[i] && __builtin_signbit(a.v[i]) == __builtin_signbit(b.v[i]);
    }
    return n;
  }
  template <class R, typename T>
  static int64_t CountBelow(int64_t n, const R& a, T limit) {
    for (T v : a.v) n += v < limit;
    return n;
  }
  static int64_t Total(int64_t n) { return n; }
  template <class R, typename T>
  static void AddWhereZero(const R& t, const R& g, T epsilon, R* num, R* den) {
    *num = Each<R>([&](size_t i) { return g.v[i] == 0 ? t.v[i] + epsilon : t.v[i]; });
    *den = Each<R>([&](size_t i) { return g.v[i] == 0 ? epsilon : g.v[i]; });
  }
};

/// Sums of one element after the other, in the lanes of the vector kernels.
struct LaneSums {
  double target[kLanes] = {}, golden[kLanes] = {}, products[kLanes] = {}, diffs[kLanes] = {};

  void FoldInto(PairPartial* acc) {
    acc->target_squares += FoldLanes(target);
    acc->golden_squares += FoldLanes(golden);
    acc->products += FoldLanes(products);
    acc->diff_squares += FoldLanes(diffs);
  }
};

void NoteErrors(double diff, double relative, PairPartial* acc) {
  if (diff > acc->max_abs) acc->max_abs = diff;
  if (relative > acc->max_relative) acc->max_relative = relative;
  acc->below1 += relative < 0.001;
  acc->below5 += relative < 0.005;
}

template <typename T, typename G>
void IntPairs(const T* target, const G* golden, size_t n, PairPartial* acc) {
  LaneSums lanes;
  for (size_t i = 0; i < n; ++i) {
    const ElementErrors e = ErrorsOfInts(target[i], golden[i]);
    const double t = static_cast<double>(target[i]), g = static_cast<double>(golden[i]);
    const size_t lane = i % kLanes;
    lanes.target[lane] += t * t;
    lanes.golden[lane] += g * g;
    lanes.products[lane] += t * g;
    lanes.diffs[lane] += e.diff * e.diff;
    acc->equal += e.diff == 0;
    NoteErrors(e.diff, e.relative, acc);
  }
  lanes.FoldInto(acc);
}

/// Adds a pair of which a part is not finite, as one element whatever is wrong with its parts.
void NoteComplex(const double* target, const double* golden, PairPartial* acc) {
  PairPartial parts;
  bool same = true;
  for (int part = 0; part < 2; ++part) {
    if (std::isfinite(target[part]) && std::isfinite(golden[part])) {
      same &= target[part] == golden[part];
    } else {
      NoteNonFinite(target[part], golden[part], &parts);
    }
  }
  const auto note = [](const NonFinite& from, NonFinite* to) {
    if (from.nan > 0) {
      ++to->nan;
    } else if (from.plus_inf > 0) {
      ++to->plus_inf;
    } else if (from.minus_inf > 0) {
      ++to->minus_inf;
    }
  };
  note(parts.target, &acc->target);
  note(parts.golden, &acc->golden);
  acc->differ += parts.differ > 0;
  acc->equal += same && parts.differ == 0;
}

}  // namespace

void ComparePairsOfInts(const int64_t* t, const int64_t* g, size_t n, PairPartial* acc) { IntPairs(t, g, n, acc); }
void ComparePairsOfInts(const uint64_t* t, const uint64_t* g, size_t n, PairPartial* acc) { IntPairs(t, g, n, acc); }
void ComparePairsOfInts(const int64_t* t, const uint64_t* g, size_t n, PairPartial* acc) { IntPairs(t, g, n, acc); }
void ComparePairsOfInts(const uint64_t* t, const int64_t* g, size_t n, PairPartial* acc) { IntPairs(t, g, n, acc); }

void ComparePairsOfComplex(const double* target, const double* golden, size_t n, PairPartial* acc) {
  LaneSums lanes;
  for (size_t i = 0; i < n; ++i) {
    const double *t = target + 2 * i, *g = golden + 2 * i;
    ElementErrors e;
    if (std::isfinite(t[0]) && std::isfinite(t[1]) && std::isfinite(g[0]) && std::isfinite(g[1])) {
      e = ErrorsOfComplex(t, g);
      const size_t lane = i % kLanes;
      lanes.target[lane] += t[0] * t[0] + t[1] * t[1];
      lanes.golden[lane] += g[0] * g[0] + g[1] * g[1];
      lanes.products[lane] += t[0] * g[0] + t[1] * g[1];
      lanes.diffs[lane] += e.diff * e.diff;
      acc->equal += std::memcmp(t, g, 2 * sizeof(double)) == 0;
    } else {
      NoteComplex(t, g, acc);
    }
    NoteErrors(e.diff, e.relative, acc);
  }
  lanes.FoldInto(acc);
}

const PairTable* ScalarPairs() {
  static const PairTable table = MakePairTable<Plain>("scalar");
  return &table;
}

}  // namespace msprobe::metrics
