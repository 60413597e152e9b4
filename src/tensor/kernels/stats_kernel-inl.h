// The vector kernels, written once over the operations `V` of an instruction set. Every set works on the same 32
// virtual lanes and folds them in the same order, so all sets give the same bits. Included by stats_<isa>.cc behind its
// target pragma; nothing here may call functions of the standard library, whose copies would be compiled for that
// target.

namespace msprobe::stats {
namespace {

// Lanes are summed in float over a block, blocks in float over a pack, packs in double. A value goes through 16
// additions and its block through 16, so the rounding of a sum stays below 2e-6 of the sum of absolute values. Sums in
// double alone take twice as long where the tensor is in the cache (BM_Stats).
constexpr size_t kBlock = 512, kPack = 16 * kBlock;
// Outside this range of a pack's sum of squares float squares over- or underflowed: the pack is summed again in double.
constexpr float kLeastSquares = 1e-29f, kMostSquares = 3e38f;

constexpr double kInfinity = __builtin_huge_val();

template <typename T>
inline T Larger(T a, T b) {
  return a > b ? a : b;
}
template <typename T>
inline T Smaller(T a, T b) {
  return a < b ? a : b;
}

template <typename T>
inline T Load(const void* data, size_t i) {
  T v;
  __builtin_memcpy(&v, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
  return v;
}

inline void AddOne(double v, Partial* acc) {
  if (v != v) {
    ++acc->nan_count;
  } else {
    if (v == kInfinity || v == -kInfinity) ++acc->inf_count;
    acc->max = Larger(acc->max, v);
    acc->min = Smaller(acc->min, v);
  }
  acc->sum += v;
  acc->squares += v * v;
}

template <class V>
inline void AddTo(double* lanes, typename V::D v) {
  V::Store(lanes, V::Add(V::LoadD(lanes), v));
}

/// A pack of one run again with squares in double, NaN and infinities counted.
template <class V, class Source>
__attribute__((noinline)) void RedoPack(const void* data, size_t begin, size_t end, Partial* acc) {
  constexpr size_t kD = V::kFloats / 2;
  int64_t nan = 0, inf = 0;
  for (size_t i = begin; i < end; i += kLanes) {
    for (size_t k = 0; k < kLanes; k += V::kFloats) {
      const auto v = Source::Vector(data, i + k);
      nan += V::CountNan(v);
      inf += V::CountInf(v);
      const auto low = V::Low(v), high = V::High(v);
      AddTo<V>(acc->lane_sums + k, low);
      AddTo<V>(acc->lane_sums + k + kD, high);
      V::Store(acc->lane_squares + k, V::Fma(low, low, V::LoadD(acc->lane_squares + k)));
      V::Store(acc->lane_squares + k + kD, V::Fma(high, high, V::LoadD(acc->lane_squares + k + kD)));
    }
  }
  acc->nan_count += nan;
  acc->inf_count += inf;
}

template <class V>
inline void FoldInto(double* lanes, const typename V::F* v) {
  constexpr size_t kF = V::kFloats;
  for (size_t k = 0; k < kLanes / kF; ++k) {
    double* at = lanes + k * kF;
    AddTo<V>(at, V::Low(v[k]));
    AddTo<V>(at + kF / 2, V::High(v[k]));
  }
}

/// Sums of the lanes in float, and the extremes.
template <class V>
struct FloatSums {
  static constexpr size_t kVectors = kLanes / V::kFloats;
  using F = typename V::F;
  F sum[kVectors], squares[kVectors], most, least;

  void Clear() {
    for (size_t k = 0; k < kVectors; ++k) sum[k] = squares[k] = V::Set(0.0f);
    most = V::Set(-__builtin_huge_valf());
    least = V::Set(__builtin_huge_valf());
  }

  template <class Source>
  void Add(const void* data, size_t i) {
    F v[kVectors];
#pragma GCC unroll 8
    for (size_t k = 0; k < kVectors; ++k) {
      v[k] = Source::Vector(data, i + k * V::kFloats);
      sum[k] = V::Add(sum[k], v[k]);
      squares[k] = V::Fma(v[k], v[k], squares[k]);
    }
    // Max(a, b) is b where either is NaN. A NaN may hide other elements here, but then the result is NaN anyway.
    F high = v[0], low = v[0];
#pragma GCC unroll 8
    for (size_t k = 1; k < kVectors; ++k) {
      high = V::Max(high, v[k]);
      low = V::Min(low, v[k]);
    }
    most = V::Max(high, most);
    least = V::Min(low, least);
  }

  void Add(const FloatSums& block) {
#pragma GCC unroll 8
    for (size_t k = 0; k < kVectors; ++k) {
      sum[k] = V::Add(sum[k], block.sum[k]);
      squares[k] = V::Add(squares[k], block.squares[k]);
    }
    most = V::Max(block.most, most);
    least = V::Min(block.least, least);
  }

  /// Whether the squares are within the range of float.
  bool Holds() const {
    F all = squares[0];
    for (size_t k = 1; k < kVectors; ++k) all = V::Add(all, squares[k]);
    const float total = V::Sum(all);
    const bool zeros = total == 0.0f && V::Greatest(most) == 0.0f && V::Greatest(V::Negate(least)) == 0.0f;
    return zeros || (total >= kLeastSquares && total <= kMostSquares);
  }
};

/// Float, bfloat16 and half: max and min exactly, sums in float lanes by blocks. `Source` loads elements as floats.
/// A block has as many elements of each of the kRuns runs, of n elements each.
template <class V, class Source, size_t kRuns>
inline void FloatRuns(const void* const* data, size_t n, Partial* acc) {
  const size_t whole = n / kLanes * kLanes;
  auto most = V::Set(-__builtin_huge_valf()), least = V::Set(__builtin_huge_valf());
  for (size_t begin = 0; begin < whole; begin += kPack / kRuns) {
    const size_t end = Smaller(begin + kPack / kRuns, whole);
    FloatSums<V> pack;
    pack.Clear();
    for (size_t at = begin; at < end;) {
      const size_t stop = Smaller(at + kBlock / kRuns, end);
      FloatSums<V> block;
      block.Clear();
      for (; at < stop; at += kLanes) {
#pragma GCC unroll 4
        for (size_t r = 0; r < kRuns; ++r) block.template Add<Source>(data[r], at);
      }
      pack.Add(block);
    }
    most = V::Max(pack.most, most);
    least = V::Min(pack.least, least);
    if (pack.Holds()) {
      FoldInto<V>(acc->lane_sums, pack.sum);
      FoldInto<V>(acc->lane_squares, pack.squares);
    } else {
      for (size_t r = 0; r < kRuns; ++r) RedoPack<V, Source>(data[r], begin, end, acc);
    }
  }
  if (whole) {
    acc->max = Larger<double>(acc->max, V::Greatest(most));
    acc->min = Smaller<double>(acc->min, -V::Greatest(V::Negate(least)));
  }
  for (size_t r = 0; r < kRuns; ++r) {
    for (size_t i = whole; i < n; ++i) AddOne(Source::One(data[r], i), acc);
  }
}

template <class V, class Source>
void FloatKernel(const void* data, size_t n, Partial* acc) {
  FloatRuns<V, Source, 1>(&data, n, acc);
}

/// Runs into the same sums. What a core fetches by itself ends with a page: of four runs it fetches more at a time.
/// From memory four come 5 to 13 % faster than two did, out of the cache 10 % slower (BM_Stats).
template <class V, class Source>
void FloatSidesKernel(const void* const* data, size_t n, Partial* acc) {
  FloatRuns<V, Source, kSides>(data, n, acc);
}

template <class V>
void DoubleKernel(const void* data, size_t n, Partial* acc) {
  using D = typename V::D;
  constexpr size_t kD = V::kFloats / 2, kVectors = 16 / kD;
  const size_t whole = n / 16 * 16;
  D sum[kVectors], squares[kVectors];
  for (size_t k = 0; k < kVectors; ++k) sum[k] = squares[k] = V::SetD(0.0);
  D most = V::SetD(-kInfinity), least = V::SetD(kInfinity);
  for (size_t i = 0; i < whole; i += 16) {
    D v[kVectors];
#pragma GCC unroll 8
    for (size_t k = 0; k < kVectors; ++k) {
      v[k] = V::LoadD(static_cast<const char*>(data) + (i + k * kD) * sizeof(double));
      sum[k] = V::Add(sum[k], v[k]);
      squares[k] = V::Fma(v[k], v[k], squares[k]);
    }
    D high = v[0], low = v[0];
#pragma GCC unroll 8
    for (size_t k = 1; k < kVectors; ++k) {
      high = V::Max(high, v[k]);
      low = V::Min(low, v[k]);
    }
    most = V::Max(high, most);
    least = V::Min(low, least);
  }
  if (whole) {
    alignas(64) double high[kD], low[kD], totals[kD];
    D total = V::SetD(0.0);
    for (size_t k = 0; k < kVectors; ++k) {
      AddTo<V>(acc->lane_sums + k * kD, sum[k]);
      AddTo<V>(acc->lane_squares + k * kD, squares[k]);
      total = V::Add(total, sum[k]);
    }
    V::Store(high, most);
    V::Store(low, least);
    V::Store(totals, total);
    double one = 0;
    for (size_t i = 0; i < kD; ++i) {
      acc->max = Larger(acc->max, high[i]);
      acc->min = Smaller(acc->min, low[i]);
      one += totals[i];
    }
    // NaN and infinities show in the sum; counting them is a rare second look.
    if (!(one - one == 0.0)) {
      for (size_t i = 0; i < whole; ++i) {
        const double v = Load<double>(data, i);
        acc->nan_count += v != v;
        acc->inf_count += v == kInfinity || v == -kInfinity;
      }
    }
  }
  for (size_t i = whole; i < n; ++i) AddOne(Load<double>(data, i), acc);
}

template <typename T>
inline void AddExtremes(T most, T least, Partial* acc) {
  if constexpr (static_cast<T>(-1) < 0) {
    acc->int_max = Larger<int64_t>(acc->int_max, most);
    acc->int_min = Smaller<int64_t>(acc->int_min, least);
  } else {
    acc->uint_max = Larger<uint64_t>(acc->uint_max, most);
    acc->uint_min = Smaller<uint64_t>(acc->uint_min, least);
  }
}

/// Integers of 8 and 16 bits: exact sums in integers, which the compiler makes vectors of.
template <typename T, typename Square>
void SmallIntKernel(const void* data, size_t n, Partial* acc) {
  constexpr size_t kChunk = 1 << 14;  // the sum of 2^14 int16, and the squares of 2^14 int8, fit into 32 bits
  for (size_t begin = 0; begin < n; begin += kChunk) {
    const size_t end = Smaller(begin + kChunk, n);
    T most = Load<T>(data, begin), least = most;
    int32_t sum = 0;
    Square squares = 0;
    for (size_t i = begin; i < end; ++i) {
      const T v = Load<T>(data, i);
      most = Larger(most, v);
      least = Smaller(least, v);
      sum += v;
      squares += static_cast<Square>(v) * static_cast<Square>(v);
    }
    AddExtremes(most, least, acc);
    acc->sum += static_cast<double>(sum);
    acc->squares += static_cast<double>(squares);
  }
}

/// Integers of 32 and 64 bits: exact sums, squares in 16 double lanes.
template <typename T>
void WideIntKernel(const void* data, size_t n, Partial* acc) {
  constexpr size_t kWide = 16;
  constexpr size_t kChunk = 1 << 20;  // the sums of 2^20 high and low halves fit into 64 bits
  constexpr bool kSigned = static_cast<T>(-1) < 0;
  for (size_t begin = 0; begin < n; begin += kChunk) {
    const size_t end = Smaller(begin + kChunk, n), whole = begin + (end - begin) / kWide * kWide;
    T most = Load<T>(data, begin), least = most;
    int64_t high_sum = 0;
    uint64_t low_sum = 0;
    double squares[kWide] = {};
    const auto add = [&](size_t i, double* square) {
      const T v = Load<T>(data, i);
      most = Larger(most, v);
      least = Smaller(least, v);
      double d;
      if constexpr (sizeof(T) == 8) {
        const auto high = static_cast<int64_t>(kSigned ? static_cast<int64_t>(v) >> 32
                                                       : static_cast<int64_t>(static_cast<uint64_t>(v) >> 32));
        const auto low = static_cast<uint32_t>(v);
        high_sum += high;
        low_sum += low;
        d = static_cast<double>(v);
      } else {
        high_sum += v;
        d = static_cast<double>(v);
      }
      *square = __builtin_fma(d, d, *square);
    };
    for (size_t i = begin; i < whole; i += kWide) {
#pragma GCC unroll 16
      for (size_t k = 0; k < kWide; ++k) add(i + k, squares + k);
    }
    for (size_t i = whole; i < end; ++i) add(i, squares);
    for (size_t width = kWide / 2; width > 0; width /= 2) {
      for (size_t i = 0; i < width; ++i) squares[i] += squares[i + width];
    }
    AddExtremes(most, least, acc);
    acc->sum += sizeof(T) == 8 ? static_cast<double>(high_sum) * 4294967296.0 + static_cast<double>(low_sum)
                               : static_cast<double>(high_sum);
    acc->squares += squares[0];
  }
}

void BoolKernel(const void* data, size_t n, Partial* acc) {
  const auto* p = static_cast<const uint8_t*>(data);
  uint64_t ones = 0;
  for (size_t begin = 0; begin < n; begin += 1 << 14) {
    const size_t end = Smaller(begin + (1 << 14), n);
    uint32_t part = 0;
    for (size_t i = begin; i < end; ++i) part += p[i] != 0;
    ones += part;
  }
  if (ones > 0) acc->max = Larger(acc->max, 1.0);
  if (ones < n) acc->max = Larger(acc->max, 0.0);
  if (ones < n) acc->min = Smaller(acc->min, 0.0);
  if (ones > 0) acc->min = Smaller(acc->min, 1.0);
  acc->sum += static_cast<double>(ones);
  acc->squares += static_cast<double>(ones);
}

template <class V>
struct Float32Source {
  static constexpr size_t kBytes = 4;
  static typename V::F Vector(const void* p, size_t i) {
    return V::LoadFloat(static_cast<const char*>(p) + i * kBytes);
  }
  static double One(const void* p, size_t i) { return Load<float>(p, i); }
};
template <class V>
struct BFloatSource {
  static constexpr size_t kBytes = 2;
  static typename V::F Vector(const void* p, size_t i) {
    return V::LoadBFloat(static_cast<const char*>(p) + i * kBytes);
  }
  static double One(const void* p, size_t i) {
    return __builtin_bit_cast(float, static_cast<uint32_t>(Load<uint16_t>(p, i)) << 16);
  }
};
template <class V>
struct HalfSource {
  static constexpr size_t kBytes = 2;
  static typename V::F Vector(const void* p, size_t i) { return V::LoadHalf(static_cast<const char*>(p) + i * kBytes); }
  static double One(const void* p, size_t i) { return HalfToFloat(Load<uint16_t>(p, i)); }
};

template <class V>
StatsTable MakeTable(const char* name) {
  StatsTable t{name, {}, {}};
  for (size_t i = 0; i < static_cast<size_t>(DType::kUnknown); ++i) t.by_dtype[i] = PlainKernel(static_cast<DType>(i));
  const auto set = [&](DType d, Kernel k, SidesKernel sides = nullptr) {
    t.by_dtype[static_cast<size_t>(d)] = k;
    t.sides[static_cast<size_t>(d)] = sides;
  };
  set(DType::kFloat32, FloatKernel<V, Float32Source<V>>, FloatSidesKernel<V, Float32Source<V>>);
  set(DType::kBFloat16, FloatKernel<V, BFloatSource<V>>, FloatSidesKernel<V, BFloatSource<V>>);
  set(DType::kFloat16, FloatKernel<V, HalfSource<V>>, FloatSidesKernel<V, HalfSource<V>>);
  set(DType::kFloat64, DoubleKernel<V>);
  set(DType::kInt8, SmallIntKernel<int8_t, int32_t>);
  set(DType::kUInt8, SmallIntKernel<uint8_t, uint32_t>);
  set(DType::kInt16, SmallIntKernel<int16_t, int64_t>);
  set(DType::kUInt16, SmallIntKernel<uint16_t, int64_t>);
  set(DType::kInt32, WideIntKernel<int32_t>);
  set(DType::kUInt32, WideIntKernel<uint32_t>);
  set(DType::kInt64, WideIntKernel<int64_t>);
  set(DType::kUInt64, WideIntKernel<uint64_t>);
  set(DType::kBool, BoolKernel);
  return t;
}

}  // namespace
}  // namespace msprobe::stats
