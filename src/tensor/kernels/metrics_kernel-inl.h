// The comparing kernels, written once over the operations `V` of an instruction set: V::F holds 16 floats, V::D 8
// doubles. Element i of a run is summed in lane i % 8, and lanes are folded in one order, so all sets give the same
// bits; products and sums are kept apart (no contraction) where a fused operation would round differently. Included by
// metrics_<isa>.cc behind its target pragma; nothing here may call functions of the standard library.

namespace msprobe::metrics {
namespace {

constexpr size_t kLanes = 8;   // of a D
constexpr size_t kGroup = 16;  // elements of an F

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
  D target, golden, products, diffs, most;

  // Written out, for what the compiler makes by itself is not made for the target.
  Sums() { target = golden = products = diffs = most = V::Set(0.0); }

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

/// The bits of a float or a double, and those of infinity.
template <typename T>
struct BitsOf;
template <>
struct BitsOf<float> {
  using Type = uint32_t;
  static constexpr Type kSign = Type{1} << 31, kInfinity = 0x7F800000;
};
template <>
struct BitsOf<double> {
  using Type = uint64_t;
  static constexpr Type kSign = Type{1} << 63, kInfinity = 0x7FF0000000000000;
};

/// 2 / p where p is a power of two, in bits: this less the bits of p.
constexpr uint64_t kTwoByPower = uint64_t{2047} << 52;

/// Puts zeros in place of pairs with an element that is not finite. Returns how many of these pairs are not equal, for
/// the zeros will be counted as equal. Bits in place of numbers and no branches, so that compilers make vectors of it.
template <typename T, size_t kWidth>
__attribute__((noinline)) int64_t ReplaceNonFinite(T* target, T* golden, PairPartial* acc) {
  using Bits = typename BitsOf<T>::Type;
  constexpr Bits kInfinity = BitsOf<T>::kInfinity, kSign = BitsOf<T>::kSign;
  Bits t[kWidth], g[kWidth];
  __builtin_memcpy(t, target, sizeof t);
  __builtin_memcpy(g, golden, sizeof g);
  Bits nan_t = 0, nan_g = 0, plus_t = 0, plus_g = 0, minus_t = 0, minus_g = 0, differ = 0;
  for (size_t i = 0; i < kWidth; ++i) {
    const Bits length_t = t[i] & ~kSign, length_g = g[i] & ~kSign;
    const Bits is_nan_t = length_t > kInfinity, is_nan_g = length_g > kInfinity;
    const Bits finite = (length_t < kInfinity) & (length_g < kInfinity);
    nan_t += is_nan_t;
    nan_g += is_nan_g;
    plus_t += t[i] == kInfinity;
    plus_g += g[i] == kInfinity;
    minus_t += t[i] == (kInfinity | kSign);
    minus_g += g[i] == (kInfinity | kSign);
    const Bits same = (is_nan_t & is_nan_g) | (t[i] == g[i]);
    differ += (finite ^ 1) & (same ^ 1);
    t[i] &= Bits{0} - finite;
    g[i] &= Bits{0} - finite;
  }
  __builtin_memcpy(target, t, sizeof t);
  __builtin_memcpy(golden, g, sizeof g);
  acc->target.nan += static_cast<int64_t>(nan_t);
  acc->golden.nan += static_cast<int64_t>(nan_g);
  acc->target.plus_inf += static_cast<int64_t>(plus_t);
  acc->golden.plus_inf += static_cast<int64_t>(plus_g);
  acc->target.minus_inf += static_cast<int64_t>(minus_t);
  acc->golden.minus_inf += static_cast<int64_t>(minus_g);
  acc->differ += static_cast<int64_t>(differ);
  return static_cast<int64_t>(differ);
}

/// What runs of floats and of doubles do alike. `T` is float or double. Without `kCheck` all elements are
/// taken as finite; what that gives for others is thrown away.
template <class V, typename T, bool kCheck>
struct PairRun {
  using X = decltype(V::Set(T(0)));
  static constexpr size_t kWidth = sizeof(X) / sizeof(T);
  static constexpr T kEpsilon = sizeof(T) == 4 ? static_cast<T>(0x1p-23) : static_cast<T>(0x1p-52);
  using Counts = decltype(V::NoCounts(V::Set(T(0))));
  Sums<V> sums;
  X most;
  Counts below1, below5, equal;
  int64_t unequal;  // among the pairs that were replaced

  PairRun() {
    most = V::Set(T(0));
    below1 = below5 = equal = V::NoCounts(most);
    unequal = 0;
  }

  void Add(X t, X g, PairPartial* acc) {
    if constexpr (kCheck) {
      if (!V::AllFinite(t, g)) {
        alignas(64) T ts[kWidth], gs[kWidth];
        V::Store(ts, t);
        V::Store(gs, g);
        unequal += ReplaceNonFinite<T, kWidth>(ts, gs, acc);
        t = V::Load(ts);
        g = V::Load(gs);
      }
    }
    if constexpr (sizeof(T) == 4) {
      sums.AddExact(V::Low(t), V::Low(g));
      sums.AddExact(V::High(t), V::High(g));
    } else {
      sums.Add(t, g);
    }
    equal = V::CountEqual(equal, t, g);
    X num, den;
    V::AddWhereZero(t, g, kEpsilon, &num, &den);
    const X relative = V::Abs(V::Div(V::Sub(num, den), den));
    most = V::Max(relative, most);
    below1 = V::CountBelow(below1, relative, static_cast<T>(0.001));
    below5 = V::CountBelow(below5, relative, static_cast<T>(0.005));
  }
  /// `padding`: how many of the pairs were zeros behind the end.
  void FoldInto(size_t padding, PairPartial* acc) const {
    sums.FoldInto(acc);
    alignas(64) T lanes[kWidth];
    V::Store(lanes, most);
    for (size_t i = 0; i < kWidth; ++i) acc->max_relative = lanes[i] > acc->max_relative ? lanes[i] : acc->max_relative;
    const int64_t extra = static_cast<int64_t>(padding);
    acc->below1 += V::Total(below1) - extra;
    acc->below5 += V::Total(below5) - extra;
    acc->equal += V::Total(equal) - unequal - extra;
  }
};

/// False, and nothing added, when an element is not finite and kCheck is not set.
template <class V, class Target, class Golden, bool kCheck>
__attribute__((noinline)) bool TryPairs(const void* target, const void* golden, size_t n, PairPartial* acc) {
  using X = decltype(Target::Load(target, 0));
  using T = typename Target::Type;
  PairRun<V, T, kCheck> run;
  constexpr size_t kWidth = sizeof(X) / sizeof(T);
  const size_t whole = n / kWidth * kWidth;
  for (size_t i = 0; i < whole; i += kWidth) run.Add(Target::Load(target, i), Golden::Load(golden, i), acc);
  if (whole < n) {
    // The rest beside zeros, which change no sum.
    alignas(64) char t[sizeof(X)] = {}, g[sizeof(X)] = {};
    __builtin_memcpy(t, static_cast<const char*>(target) + whole * Target::kSize, (n - whole) * Target::kSize);
    __builtin_memcpy(g, static_cast<const char*>(golden) + whole * Golden::kSize, (n - whole) * Golden::kSize);
    run.Add(Target::Load(t, 0), Golden::Load(g, 0), acc);
  }
  if constexpr (!kCheck) {
    // Squares of floats stay far inside the range of double: a sum leaves it only by an element. A sum of doubles may
    // do so by itself; then the look at each element costs time and changes nothing.
    alignas(64) double lanes[kLanes];
    V::Store(lanes, V::Add(run.sums.target, run.sums.golden));
    const double total = FoldLanes(lanes);
    if (!(total - total == 0)) return false;
  }
  run.FoldInto(whole < n ? kWidth - (n - whole) : 0, acc);
  return true;
}

template <class V, class Target, class Golden>
void ComparePairs(const void* target, const void* golden, size_t n, PairPartial* acc) {
  if (!TryPairs<V, Target, Golden, false>(target, golden, n, acc)) {
    (void)TryPairs<V, Target, Golden, true>(target, golden, n, acc);
  }
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
void ComparePairsThatAreSame(const void* both, size_t n, PairPartial* acc) {
  using X = decltype(Source::Load(both, 0));
  using T = typename Source::Type;
  constexpr size_t kWidth = sizeof(X) / sizeof(T);
  typename V::D squares = V::Set(0.0);
  const auto add = [&](X v) {
    if (!V::AllFinite(v, v)) {
      alignas(64) T t[kWidth], g[kWidth];
      V::Store(t, v);
      V::Store(g, v);
      (void)ReplaceNonFinite<T, kWidth>(t, g, acc);
      v = V::Load(t);
    }
    if constexpr (sizeof(T) == 4) {
      const auto low = V::Low(v), high = V::High(v);
      squares = V::Fma(low, low, squares);
      squares = V::Fma(high, high, squares);
    } else {
      squares = V::Add(squares, V::Mul(v, v));
    }
  };
  const size_t whole = n / kWidth * kWidth;
  for (size_t i = 0; i < whole; i += kWidth) add(Source::Load(both, i));
  if (whole < n) {
    alignas(64) char rest[sizeof(X)] = {};
    __builtin_memcpy(rest, static_cast<const char*>(both) + whole * Source::kSize, (n - whole) * Source::kSize);
    add(Source::Load(rest, 0));
  }
  alignas(64) double lanes[kLanes];
  V::Store(lanes, squares);
  NoteSame(n, FoldLanes(lanes), acc);
}

// How elements are loaded: kSize bytes each, as what type.
template <class V>
struct FloatSource {
  using Type = float;
  static constexpr size_t kSize = 4;
  static typename V::F Load(const void* p, size_t i) { return V::LoadFloat(static_cast<const char*>(p) + i * kSize); }
};
template <class V>
struct BFloatSource {
  using Type = float;
  static constexpr size_t kSize = 2;
  static typename V::F Load(const void* p, size_t i) { return V::LoadBFloat(static_cast<const char*>(p) + i * kSize); }
};
template <class V>
struct HalfSource {
  using Type = float;
  static constexpr size_t kSize = 2;
  static typename V::F Load(const void* p, size_t i) { return V::LoadHalf(static_cast<const char*>(p) + i * kSize); }
};
template <class V>
struct DoubleSource {
  using Type = double;
  static constexpr size_t kSize = 8;
  static typename V::D Load(const void* p, size_t i) { return V::LoadDouble(static_cast<const char*>(p) + i * kSize); }
};

/// Of finite elements; see UlpKernel for `sums`.
template <class V>
__attribute__((noinline)) void CountUlps(const double* target, const double* golden, size_t n, const UlpFormat& format,
                                         double* sums) {
  using D = typename V::D;
  // Below a quotient by more than divisions and products round, so that nothing larger is left out.
  constexpr double kBelow = 1 - 0x1p-50, kExact = 0x1p-960;
  const D one = V::Set(1.0), smallest = V::Set(format.smallest);
  D products, largest, units, tolerance, bound;
  products = largest = units = V::Set(0.0);
  tolerance = V::Set(sums[2]);
  alignas(64) double lanes[kLanes];
  const auto raise = [&] {
    V::Store(lanes, tolerance);
    const double most = GreatestLane(lanes);
    bound = V::Set(most < kExact ? 0.0 : most * kBelow);
  };
  raise();
  const auto add = [&](D t, D g) {
    const D size = V::Abs(g), most = V::MaxAbs(t, size), apart = V::Abs(V::Sub(t, g));
    products = V::Add(products, V::Mul(t, g));
    largest = V::Max(most, largest);
    units = V::Max(V::Mul(apart, V::TwoOverPower(V::Max(most, smallest))), units);
    const D whole = V::Add(size, one);
    if (V::AnyAbove(apart, V::Mul(bound, whole))) {  // seldom: divisions take most of the time
      tolerance = V::Max(V::Div(apart, whole), tolerance);
      raise();
    }
  };
  const size_t whole = n / kLanes * kLanes;
  for (size_t i = 0; i < whole; i += kLanes) add(V::LoadDouble(target + i), V::LoadDouble(golden + i));
  if (whole < n) {
    alignas(64) double t[kLanes] = {}, g[kLanes] = {};
    __builtin_memcpy(t, target + whole, (n - whole) * sizeof(double));
    __builtin_memcpy(g, golden + whole, (n - whole) * sizeof(double));
    add(V::LoadDouble(t), V::LoadDouble(g));
  }
  V::Store(lanes, products);
  sums[0] += FoldLanes(lanes);
  V::Store(lanes, units);
  const double ulps = GreatestLane(lanes) * format.steps;
  if (ulps > sums[1]) sums[1] = ulps;
  V::Store(lanes, tolerance);
  sums[2] = GreatestLane(lanes);
  V::Store(lanes, largest);
  if (const double most = GreatestLane(lanes); most > sums[3]) sums[3] = most;
}

template <class V>
PairTable MakePairTable(const char* name) {
  using F = FloatSource<V>;
  using B = BFloatSource<V>;
  using H = HalfSource<V>;
  using D = DoubleSource<V>;
  return {name,
          {{ComparePairs<V, F, F>, ComparePairs<V, F, B>, ComparePairs<V, F, H>},
           {ComparePairs<V, B, F>, ComparePairs<V, B, B>, ComparePairs<V, B, H>},
           {ComparePairs<V, H, F>, ComparePairs<V, H, B>, ComparePairs<V, H, H>}},
          ComparePairs<V, D, D>,
          {ComparePairsThatAreSame<V, F>, ComparePairsThatAreSame<V, B>, ComparePairsThatAreSame<V, H>},
          ComparePairsThatAreSame<V, D>,
          CountUlps<V>};
}

}  // namespace
}  // namespace msprobe::metrics
