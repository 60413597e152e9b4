// Statistics of tensors as a device computes them: one body that compiles for the host and for NVPTX (statistics.cu). A
// part of a tensor is read by kLanes lanes, and what they find is folded in a fixed order, so that both give the same
// bits and no result depends on how the parts are spread.
#pragma once

#include <cstdint>

#include "tensor/kernels/dtype.h"
#include "tensor/kernels/small_floats.h"

#ifdef __NVPTX__
#define MSPROBE_UNROLL _Pragma("unroll")
#else
#define MSPROBE_UNROLL
#endif

namespace msprobe::device {

inline constexpr int kMostDims = 8;
inline constexpr int kLanes = 256;  // threads of a block
inline constexpr int kMostTensors = 16;
inline constexpr int64_t kPartElements = int64_t{1} << 14;
inline constexpr int64_t kMostParts = 1024;  // of a tensor

enum class TallyKind : uint8_t { kFloating, kSigned, kUnsigned };

/// What was found in some elements. Extremes are doubles, or int64_t or uint64_t of integers, and skip NaN. Squares
/// that could leave the range of double are summed apart, scaled.
struct DeviceTally {
  uint64_t max, min;  // bits
  double sum, squares;
  double large_squares, small_squares;  // times kLargeScale^2, kSmallScale^2
  int64_t nan_count, inf_count;
};
static_assert(sizeof(DeviceTally) == 64);

inline constexpr double kLarge = 0x1p480, kLargeScale = 0x1p-600;
inline constexpr double kSmall = 0x1p-480, kSmallScale = 0x1p600;

/// A tensor; without dimensions its elements are contiguous. Strides count elements.
struct DeviceTensor {
  const void* data;
  int64_t count;
  int64_t part_elements;
  int64_t shape[kMostDims], strides[kMostDims];
  int32_t first_part;  // of the batch
  DType dtype;
  uint8_t ndim;
};

static_assert(sizeof(DeviceTensor) % sizeof(uint64_t) == 0);

/// The argument of a launch: as many blocks as there are parts.
struct DeviceBatch {
  DeviceTally* parts;
  int32_t tensors;
  DeviceTensor tensor[kMostTensors];
};
static_assert(sizeof(DeviceBatch) <= 4096);  // what a launch can be given

inline TallyKind KindOf(DType t) {
  if (t >= DType::kInt8 && t <= DType::kInt64) return TallyKind::kSigned;
  if (t >= DType::kUInt8 && t <= DType::kUInt64) return TallyKind::kUnsigned;
  return TallyKind::kFloating;
}

inline double SquareRoot(double v) {
#ifdef __NVPTX__
  return __nvvm_sqrt_rn_d(v);
#else
  return __builtin_sqrt(v);
#endif
}

/// sqrt(large^2 + small^2) of numbers whose squares are in range; what rounding the sum lost is given back.
inline double CorrectedHypot(double large, double small) {
  const double h = SquareRoot(large * large + small * small);
  double error;
  if (h <= 2.0 * small) {
    const double delta = h - small;
    error = large * (2.0 * delta - large) + (delta - 2.0 * (large - small)) * delta;
  } else {
    const double delta = h - large;
    error = 2.0 * delta * (large - 2.0 * small) + ((4.0 * delta - small) * small + delta * delta);
  }
  return h - error / (2.0 * h);
}

/// As std::hypot: an infinity wins over a NaN. Few numbers need it, and it would be there once for each use.
__attribute__((noinline)) inline double Hypot(double x, double y) {
  const double ax = __builtin_fabs(x), ay = __builtin_fabs(y), infinity = __builtin_huge_val();
  if (ax == infinity || ay == infinity) return infinity;
  if (ax != ax || ay != ay) return __builtin_nan("");
  const double large = ax > ay ? ax : ay, small = ax > ay ? ay : ax;
  if (small <= large * 0x1p-54) return large + small;
  if (large > 0x1p511) return CorrectedHypot(large * kLargeScale, small * kLargeScale) * kSmallScale;
  if (small < 0x1p-459) return CorrectedHypot(large * kSmallScale, small * kSmallScale) * kLargeScale;
  return CorrectedHypot(large, small);
}

template <bool is_signed>
struct WideInteger {
  using Type = int64_t;
  static constexpr Type kLowest = INT64_MIN, kHighest = INT64_MAX;
};
template <>
struct WideInteger<false> {
  using Type = uint64_t;
  static constexpr Type kLowest = 0, kHighest = UINT64_MAX;
};

/// Adds elements of a type that is no integer.
template <DType type>
struct FloatReader {
  static constexpr bool kWide = type == DType::kFloat64 || type == DType::kComplex128;

  double max = -__builtin_huge_val(), min = __builtin_huge_val(), sum = 0, squares = 0, large = 0, small = 0;
  int64_t nan_count = 0, inf_count = 0;

  void AddValue(double v) {
    if (v != v) {
      ++nan_count;
    } else {
      if (v == __builtin_huge_val() || v == -__builtin_huge_val()) ++inf_count;
      if (v > max) max = v;
      if (v < min) min = v;
    }
    sum += v;
  }

  void AddSquare(double v) {
    const double size = __builtin_fabs(v);
    if (kWide && size > kLarge) {
      large += (v * kLargeScale) * (v * kLargeScale);
    } else if (kWide && size < kSmall) {
      small += (v * kSmallScale) * (v * kSmallScale);
    } else {
      squares += v * v;
    }
  }

  void AddReal(double v) {
    AddValue(v);
    AddSquare(v);
  }

  /// T: the absolute value is rounded to it. What CPU statistics take the root of, or give to std::hypot.
  template <typename T>
  void AddComplex(double re, double im) {
    const double square = re * re + im * im;
    const bool plain = type != DType::kComplex32 && square > 1e-290 && square < 1e300;
    AddValue(static_cast<T>(plain ? SquareRoot(square) : Hypot(re, im)));
    AddSquare(re);
    AddSquare(im);
  }

  void Add(const void* data, int64_t at) {
    if constexpr (type == DType::kFloat32) AddReal(static_cast<const float*>(data)[at]);
    if constexpr (type == DType::kFloat64) AddReal(static_cast<const double*>(data)[at]);
    if constexpr (type == DType::kFloat16) AddReal(stats::HalfToFloat(static_cast<const uint16_t*>(data)[at]));
    if constexpr (type == DType::kBFloat16) AddReal(stats::BFloatToFloat(static_cast<const uint16_t*>(data)[at]));
    if constexpr (type >= DType::kFloat8E4M3FN && type <= DType::kFloat8E8M0FNU) {
      AddReal(stats::Float8ToFloat(type, static_cast<const uint8_t*>(data)[at]));
    }
    if constexpr (type == DType::kBool) AddReal(static_cast<const uint8_t*>(data)[at] != 0 ? 1 : 0);
    if constexpr (type == DType::kComplex32) {
      const auto* p = static_cast<const uint16_t*>(data) + 2 * at;
      AddComplex<double>(stats::HalfToFloat(p[0]), stats::HalfToFloat(p[1]));
    }
    if constexpr (type == DType::kComplex64) {
      const auto* p = static_cast<const float*>(data) + 2 * at;
      AddComplex<float>(p[0], p[1]);
    }
    if constexpr (type == DType::kComplex128) {
      const auto* p = static_cast<const double*>(data) + 2 * at;
      AddComplex<double>(p[0], p[1]);
    }
  }

  void Store(DeviceTally* to) const {
    *to = {__builtin_bit_cast(uint64_t, max),
           __builtin_bit_cast(uint64_t, min),
           sum,
           squares,
           large,
           small,
           nan_count,
           inf_count};
  }
};

/// The same of integers of type T.
template <typename T>
struct IntegerReader {
  static constexpr bool kIsSigned = T(-1) < T(0);
  using Wide = WideInteger<kIsSigned>;

  typename Wide::Type max = Wide::kLowest, min = Wide::kHighest;
  double sum = 0, squares = 0;

  void Add(const void* data, int64_t at) {
    const typename Wide::Type v = static_cast<const T*>(data)[at];
    if (v > max) max = v;
    if (v < min) min = v;
    const double d = static_cast<double>(v);
    sum += d;
    squares += d * d;
  }

  void Store(DeviceTally* to) const {
    *to = {static_cast<uint64_t>(max), static_cast<uint64_t>(min), sum, squares, 0, 0, 0, 0};
  }
};

/// Where the element lies whose number it is, in elements from the first.
inline int64_t OffsetOf(const DeviceTensor& t, int64_t number) {
  int64_t offset = 0;
  for (int d = t.ndim - 1; d > 0; --d) {
    const int64_t length = t.shape[d];
    int64_t quotient;
    if (((number | length) >> 32) == 0) {  // devices have no division of 64 bits
      quotient = static_cast<uint32_t>(number) / static_cast<uint32_t>(length);
    } else {
      quotient = number / length;
    }
    offset += (number - quotient * length) * t.strides[d];
    number = quotient;
  }
  return offset + number * t.strides[0];
}

/// Every kLanes-th element of a part. Of the types that trainings are made of several at a time, so that reading
/// overlaps.
template <class Reader, int together = 1>
__attribute__((noinline)) inline void ReadLane(const DeviceTensor& t, int64_t part, int lane, DeviceTally* to) {
  Reader reader;
  const int64_t begin = part * t.part_elements;
  const int64_t end = t.count - begin < t.part_elements ? t.count : begin + t.part_elements;
  int64_t at = begin + lane;
  if (t.ndim == 0) {
    for (; together > 1 && at < end - (together - 1) * kLanes; at += together * kLanes) {
      MSPROBE_UNROLL
      for (int i = 0; i < together; ++i) reader.Add(t.data, at + i * kLanes);
    }
  }
  for (; at < end; at += kLanes) reader.Add(t.data, t.ndim == 0 ? at : OffsetOf(t, at));
  reader.Store(to);
}

/// What lane `lane` finds in part `part` of a tensor.
inline void TallyLane(const DeviceTensor& t, int64_t part, int lane, DeviceTally* to) {
  switch (t.dtype) {
    case DType::kFloat32: return ReadLane<FloatReader<DType::kFloat32>, 8>(t, part, lane, to);
    case DType::kFloat64: return ReadLane<FloatReader<DType::kFloat64>, 4>(t, part, lane, to);
    case DType::kFloat16: return ReadLane<FloatReader<DType::kFloat16>, 8>(t, part, lane, to);
    case DType::kBFloat16: return ReadLane<FloatReader<DType::kBFloat16>, 8>(t, part, lane, to);
    case DType::kFloat8E4M3FN: return ReadLane<FloatReader<DType::kFloat8E4M3FN>>(t, part, lane, to);
    case DType::kFloat8E5M2: return ReadLane<FloatReader<DType::kFloat8E5M2>>(t, part, lane, to);
    case DType::kFloat8E4M3FNUZ: return ReadLane<FloatReader<DType::kFloat8E4M3FNUZ>>(t, part, lane, to);
    case DType::kFloat8E5M2FNUZ: return ReadLane<FloatReader<DType::kFloat8E5M2FNUZ>>(t, part, lane, to);
    case DType::kFloat8E8M0FNU: return ReadLane<FloatReader<DType::kFloat8E8M0FNU>>(t, part, lane, to);
    case DType::kInt8: return ReadLane<IntegerReader<int8_t>>(t, part, lane, to);
    case DType::kInt16: return ReadLane<IntegerReader<int16_t>>(t, part, lane, to);
    case DType::kInt32: return ReadLane<IntegerReader<int32_t>>(t, part, lane, to);
    case DType::kInt64: return ReadLane<IntegerReader<int64_t>>(t, part, lane, to);
    case DType::kUInt8: return ReadLane<IntegerReader<uint8_t>>(t, part, lane, to);
    case DType::kUInt16: return ReadLane<IntegerReader<uint16_t>>(t, part, lane, to);
    case DType::kUInt32: return ReadLane<IntegerReader<uint32_t>>(t, part, lane, to);
    case DType::kUInt64: return ReadLane<IntegerReader<uint64_t>>(t, part, lane, to);
    case DType::kBool: return ReadLane<FloatReader<DType::kBool>>(t, part, lane, to);
    case DType::kComplex32: return ReadLane<FloatReader<DType::kComplex32>>(t, part, lane, to);
    case DType::kComplex64: return ReadLane<FloatReader<DType::kComplex64>>(t, part, lane, to);
    case DType::kComplex128: return ReadLane<FloatReader<DType::kComplex128>>(t, part, lane, to);
    case DType::kUnknown: return;
  }
}

template <typename T>
inline void FoldExtremes(const DeviceTally& from, DeviceTally* to) {
  if (__builtin_bit_cast(T, from.max) > __builtin_bit_cast(T, to->max)) to->max = from.max;
  if (__builtin_bit_cast(T, from.min) < __builtin_bit_cast(T, to->min)) to->min = from.min;
}

inline void FoldTally(TallyKind kind, const DeviceTally& from, DeviceTally* to) {
  switch (kind) {
    case TallyKind::kFloating: FoldExtremes<double>(from, to); break;
    case TallyKind::kSigned: FoldExtremes<int64_t>(from, to); break;
    case TallyKind::kUnsigned: FoldExtremes<uint64_t>(from, to); break;
  }
  to->sum += from.sum;
  to->squares += from.squares;
  to->large_squares += from.large_squares;
  to->small_squares += from.small_squares;
  to->nan_count += from.nan_count;
  to->inf_count += from.inf_count;
}

/// Which tensor of the batch a part belongs to.
inline int TensorOfPart(const DeviceBatch& batch, int32_t part) {
  int number = 0;
  while (number + 1 < batch.tensors && batch.tensor[number + 1].first_part <= part) ++number;
  return number;
}

}  // namespace msprobe::device
