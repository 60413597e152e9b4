// The comparing kernels, written once over the operations `V` of an instruction set: V::F holds 16 floats, V::D 8
// doubles. Element i of a run is summed in lane i % 8, and lanes are folded in one order, so all sets give the same
// bits; products and sums are kept apart (no contraction) where a fused operation would round differently. Included by
// metrics_<isa>.cc behind its target pragma; nothing here may call functions of the standard library.

namespace msprobe::metrics {
namespace {

constexpr size_t kLanes = 8;   // of a D
constexpr size_t kGroup = 16;  // elements of an F
constexpr float kEpsilon = 1.1920928955078125e-07f;
constexpr double kEpsilonD = 2.220446049250313e-16;

inline double FoldLanes(double* lane) {
  for (size_t width = kLanes / 2; width > 0; width /= 2) {
    for (size_t i = 0; i < width; ++i) lane[i] += lane[i + width];
  }
  return lane[0];
}
inline double GreatestLane(const double* lane) {
  double most = lane[0];
  for (size_t i = 1; i < kLanes; ++i) most = lane[i] > most ? lane[i] : most;
  return most;
}

template <class V>
struct Sums {
  using D = typename V::D;
  D target = V::SetD(0), golden = V::SetD(0), products = V::SetD(0), diffs = V::SetD(0), most = V::SetD(0);

  void Add(D t, D g) {
    const D d = V::Sub(t, g);
    most = V::MaxAbs(d, most);
    diffs = V::Add(diffs, V::Mul(d, d));
    target = V::Add(target, V::Mul(t, t));
    golden = V::Add(golden, V::Mul(g, g));
    products = V::Add(products, V::Mul(t, g));
  }
  /// Where the products of two elements are exact, a fused operation gives the same bits.
  void AddExact(D t, D g) {
    const D d = V::Sub(t, g);
    most = V::MaxAbs(d, most);
    diffs = V::Add(diffs, V::Mul(d, d));
    target = V::Fma(t, t, target);
    golden = V::Fma(g, g, golden);
    products = V::Fma(t, g, products);
  }
  void FoldInto(PairPartial* acc) const {
    alignas(64) double lanes[kLanes];
    V::Store(lanes, target);
    acc->target_squares += FoldLanes(lanes);
    V::Store(lanes, golden);
    acc->golden_squares += FoldLanes(lanes);
    V::Store(lanes, products);
    acc->products += FoldLanes(lanes);
    V::Store(lanes, diffs);
    acc->diff_squares += FoldLanes(lanes);
    V::Store(lanes, most);
    const double greatest = GreatestLane(lanes);
    if (greatest > acc->max_abs) acc->max_abs = greatest;
  }
};

/// Puts zeros in place of pairs with an element that is not finite. Returns how many of these pairs are not equal, for
/// the zeros will be counted as equal.
template <typename T>
__attribute__((noinline)) int64_t ReplaceNonFinite(T* target, T* golden, size_t n, PairPartial* acc) {
  int64_t unequal = 0;
  for (size_t i = 0; i < n; ++i) {
    if (target[i] - target[i] == 0 && golden[i] - golden[i] == 0) continue;
    const int64_t before = acc->differ;
    NoteNonFinite(target[i], golden[i], acc);
    unequal += acc->differ - before;
    target[i] = golden[i] = 0;
  }
  return unequal;
}

template <class V>
struct FloatRun {
  using F = typename V::F;
  Sums<V> sums;
  F most = V::Set(0);
  int64_t below1 = 0, below5 = 0, equal = 0;

  void Add(F t, F g, PairPartial* acc) {
    if (!V::AllFinite(t, g)) {
      alignas(64) float ts[kGroup], gs[kGroup];
      V::Store(ts, t);
      V::Store(gs, g);
      equal -= ReplaceNonFinite(ts, gs, kGroup, acc);
      t = V::LoadFloat(ts);
      g = V::LoadFloat(gs);
    }
    sums.AddExact(V::Low(t), V::Low(g));
    sums.AddExact(V::High(t), V::High(g));
    equal += V::CountEqual(t, g);
    F num, den;
    V::AddWhereZero(t, g, kEpsilon, &num, &den);
    const F relative = V::Abs(V::Div(V::Sub(num, den), den));
    most = V::Max(relative, most);
    below1 += V::CountBelow(relative, 0.001f);
    below5 += V::CountBelow(relative, 0.005f);
  }
  void FoldInto(size_t padding, PairPartial* acc) const {
    sums.FoldInto(acc);
    alignas(64) float lanes[kGroup];
    V::Store(lanes, most);
    for (size_t i = 0; i < kGroup; ++i) acc->max_relative = lanes[i] > acc->max_relative ? lanes[i] : acc->max_relative;
    acc->below1 += below1 - static_cast<int64_t>(padding);
    acc->below5 += below5 - static_cast<int64_t>(padding);
    acc->equal += equal - static_cast<int64_t>(padding);
  }
};

template <class V, class Target, class Golden>
void FloatPairs(const void* target, const void* golden, size_t n, PairPartial* acc) {
  FloatRun<V> run;
  const size_t whole = n / kGroup * kGroup;
  for (size_t i = 0; i < whole; i += kGroup) run.Add(Target::Load(target, i), Golden::Load(golden, i), acc);
  if (whole == n) return run.FoldInto(0, acc);
  // The rest beside zeros, which change no sum.
  alignas(64) char t[kGroup * 4] = {}, g[kGroup * 4] = {};
  __builtin_memcpy(t, static_cast<const char*>(target) + whole * Target::kSize, (n - whole) * Target::kSize);
  __builtin_memcpy(g, static_cast<const char*>(golden) + whole * Golden::kSize, (n - whole) * Golden::kSize);
  run.Add(Target::Load(t, 0), Golden::Load(g, 0), acc);
  run.FoldInto(kGroup - (n - whole), acc);
}

template <class V>
struct DoubleRun {
  using D = typename V::D;
  Sums<V> sums;
  D most = V::SetD(0);
  int64_t below1 = 0, below5 = 0, equal = 0;

  void Add(D t, D g, PairPartial* acc) {
    if (!V::AllFinite(t, g)) {
      alignas(64) double ts[kLanes], gs[kLanes];
      V::Store(ts, t);
      V::Store(gs, g);
      equal -= ReplaceNonFinite(ts, gs, kLanes, acc);
      t = V::LoadD(ts);
      g = V::LoadD(gs);
    }
    sums.Add(t, g);
    equal += V::CountEqual(t, g);
    D num, den;
    V::AddWhereZero(t, g, kEpsilonD, &num, &den);
    const D relative = V::Abs(V::Div(V::Sub(num, den), den));
    most = V::MaxAbs(relative, most);
    below1 += V::CountBelow(relative, 0.001);
    below5 += V::CountBelow(relative, 0.005);
  }
};

template <class V>
void DoublePairs(const void* target, const void* golden, size_t n, PairPartial* acc) {
  DoubleRun<V> run;
  const size_t whole = n / kLanes * kLanes;
  const auto *t = static_cast<const char*>(target), *g = static_cast<const char*>(golden);
  for (size_t i = 0; i < whole; i += kLanes) run.Add(V::LoadD(t + i * 8), V::LoadD(g + i * 8), acc);
  int64_t padding = 0;
  if (whole < n) {
    alignas(64) double ts[kLanes] = {}, gs[kLanes] = {};
    __builtin_memcpy(ts, t + whole * 8, (n - whole) * 8);
    __builtin_memcpy(gs, g + whole * 8, (n - whole) * 8);
    run.Add(V::LoadD(ts), V::LoadD(gs), acc);
    padding = static_cast<int64_t>(kLanes - (n - whole));
  }
  run.sums.FoldInto(acc);
  alignas(64) double lanes[kLanes];
  V::Store(lanes, run.most);
  const double most = GreatestLane(lanes);
  if (most > acc->max_relative) acc->max_relative = most;
  acc->below1 += run.below1 - padding;
  acc->below5 += run.below5 - padding;
  acc->equal += run.equal - padding;
}

/// Runs that are the same on both sides: one sum in the place of three, the same to the bit.
inline void NoteSame(size_t n, double squares, PairPartial* acc) {
  acc->target_squares += squares;
  acc->golden_squares += squares;
  acc->products += squares;
  acc->below1 += static_cast<int64_t>(n);
  acc->below5 += static_cast<int64_t>(n);
  acc->equal += static_cast<int64_t>(n);
}

template <class V, class Source>
void SameFloats(const void* both, size_t n, PairPartial* acc) {
  using F = typename V::F;
  typename V::D squares = V::SetD(0);
  const auto add = [&](F v) {
    if (!V::AllFinite(v, v)) {
      alignas(64) float t[kGroup], g[kGroup];
      V::Store(t, v);
      V::Store(g, v);
      (void)ReplaceNonFinite(t, g, kGroup, acc);
      v = V::LoadFloat(t);
    }
    const auto low = V::Low(v), high = V::High(v);
    squares = V::Fma(low, low, squares);
    squares = V::Fma(high, high, squares);
  };
  const size_t whole = n / kGroup * kGroup;
  for (size_t i = 0; i < whole; i += kGroup) add(Source::Load(both, i));
  if (whole < n) {
    alignas(64) char rest[kGroup * 4] = {};
    __builtin_memcpy(rest, static_cast<const char*>(both) + whole * Source::kSize, (n - whole) * Source::kSize);
    add(Source::Load(rest, 0));
  }
  alignas(64) double lanes[kLanes];
  V::Store(lanes, squares);
  NoteSame(n, FoldLanes(lanes), acc);
}

template <class V>
void SameDoubles(const void* both, size_t n, PairPartial* acc) {
  typename V::D squares = V::SetD(0);
  const auto add = [&](typename V::D v) {
    if (!V::AllFinite(v, v)) {
      alignas(64) double t[kLanes], g[kLanes];
      V::Store(t, v);
      V::Store(g, v);
      (void)ReplaceNonFinite(t, g, kLanes, acc);
      v = V::LoadD(t);
    }
    squares = V::Add(squares, V::Mul(v, v));
  };
  const auto* p = static_cast<const char*>(both);
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) add(V::LoadD(p + i * 8));
  if (whole < n) {
    alignas(64) double rest[kLanes] = {};
    __builtin_memcpy(rest, p + whole * 8, (n - whole) * 8);
    add(V::LoadD(rest));
  }
  alignas(64) double lanes[kLanes];
  V::Store(lanes, squares);
  NoteSame(n, FoldLanes(lanes), acc);
}

template <class V>
struct FloatSource {
  static constexpr size_t kSize = 4;
  static typename V::F Load(const void* p, size_t i) { return V::LoadFloat(static_cast<const char*>(p) + i * 4); }
};
template <class V>
struct BFloatSource {
  static constexpr size_t kSize = 2;
  static typename V::F Load(const void* p, size_t i) { return V::LoadBFloat(static_cast<const char*>(p) + i * 2); }
};
template <class V>
struct HalfSource {
  static constexpr size_t kSize = 2;
  static typename V::F Load(const void* p, size_t i) { return V::LoadHalf(static_cast<const char*>(p) + i * 2); }
};

template <class V>
PairTable MakePairTable(const char* name) {
  using F = FloatSource<V>;
  using B = BFloatSource<V>;
  using H = HalfSource<V>;
  return {name,
          {{FloatPairs<V, F, F>, FloatPairs<V, F, B>, FloatPairs<V, F, H>},
           {FloatPairs<V, B, F>, FloatPairs<V, B, B>, FloatPairs<V, B, H>},
           {FloatPairs<V, H, F>, FloatPairs<V, H, B>, FloatPairs<V, H, H>}},
          DoublePairs<V>,
          {SameFloats<V, F>, SameFloats<V, B>, SameFloats<V, H>},
          SameDoubles<V>};
}

}  // namespace
}  // namespace msprobe::metrics
