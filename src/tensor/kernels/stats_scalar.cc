// The plain loops that the vector kernels are tested against, and the kernels of types too rare for vectors.
#include <cmath>
#include <cstring>

#include "tensor/kernels/stats_kernels.h"

namespace msprobe::stats {
namespace {

void AddFloating(double v, double absolute_square, Partial* acc) {
  if (std::isnan(v)) {
    ++acc->nan_count;
  } else {
    if (std::isinf(v)) ++acc->inf_count;
    if (v > acc->max) acc->max = v;
    if (v < acc->min) acc->min = v;
  }
  acc->sum += v;
  acc->squares += absolute_square;
}

template <typename T>
T LoadAt(const void* data, size_t i) {
  T v;
  std::memcpy(&v, static_cast<const char*>(data) + i * sizeof(T), sizeof(T));
  return v;
}

template <typename T>
void FloatLoop(const void* data, size_t n, Partial* acc) {
  for (size_t i = 0; i < n; ++i) {
    const double v = LoadAt<T>(data, i);
    AddFloating(v, v * v, acc);
  }
}

template <float (*convert)(uint16_t)>
void Float16Loop(const void* data, size_t n, Partial* acc) {
  for (size_t i = 0; i < n; ++i) {
    const double v = convert(LoadAt<uint16_t>(data, i));
    AddFloating(v, v * v, acc);
  }
}

template <typename T>
void SignedLoop(const void* data, size_t n, Partial* acc) {
  for (size_t i = 0; i < n; ++i) {
    const int64_t v = LoadAt<T>(data, i);
    if (v > acc->int_max) acc->int_max = v;
    if (v < acc->int_min) acc->int_min = v;
    const double d = static_cast<double>(v);
    acc->sum += d;
    acc->squares += d * d;
  }
}

template <typename T>
void UnsignedLoop(const void* data, size_t n, Partial* acc) {
  for (size_t i = 0; i < n; ++i) {
    const uint64_t v = LoadAt<T>(data, i);
    if (v > acc->uint_max) acc->uint_max = v;
    if (v < acc->uint_min) acc->uint_min = v;
    const double d = static_cast<double>(v);
    acc->sum += d;
    acc->squares += d * d;
  }
}

void BoolLoop(const void* data, size_t n, Partial* acc) {
  for (size_t i = 0; i < n; ++i) {
    const double v = LoadAt<uint8_t>(data, i) != 0;
    AddFloating(v, v, acc);
  }
}

double Absolute(double re, double im, double square) {
  // hypot() is slow and needed only where the square leaves the range of double.
  return square > 1e-290 && square < 1e300 ? std::sqrt(square) : std::hypot(re, im);
}

/// `T` is the type of one part. The absolute value is rounded to that type, as the frameworks' abs() does.
template <typename T>
void ComplexLoop(const void* data, size_t n, Partial* acc) {
  for (size_t i = 0; i < n; ++i) {
    const double re = LoadAt<T>(data, 2 * i), im = LoadAt<T>(data, 2 * i + 1);
    const double square = re * re + im * im;
    AddFloating(static_cast<T>(Absolute(re, im, square)), square, acc);
  }
}

void ComplexHalfLoop(const void* data, size_t n, Partial* acc) {
  for (size_t i = 0; i < n; ++i) {
    const double re = HalfToFloat(LoadAt<uint16_t>(data, 2 * i)), im = HalfToFloat(LoadAt<uint16_t>(data, 2 * i + 1));
    AddFloating(std::hypot(re, im), re * re + im * im, acc);
  }
}

/// A byte has 256 values, so counting them is all there is to do.
template <DType type>
void Float8Loop(const void* data, size_t n, Partial* acc) {
  static constexpr size_t kTables = 4;  // equal neighbours would wait for each other's increment in one table
  uint64_t counts[kTables][256] = {};
  const auto* p = static_cast<const uint8_t*>(data);
  for (size_t i = 0; i < n; ++i) ++counts[i % kTables][p[i]];
  for (int b = 0; b < 256; ++b) {
    const uint64_t count = counts[0][b] + counts[1][b] + counts[2][b] + counts[3][b];
    if (count == 0) continue;
    const double v = Float8ToFloat(type, static_cast<uint8_t>(b)), times = static_cast<double>(count);
    acc->sum += v * times;
    acc->squares += v * v * times;
    if (std::isnan(v)) {
      acc->nan_count += static_cast<int64_t>(count);
      continue;
    }
    if (std::isinf(v)) acc->inf_count += static_cast<int64_t>(count);
    if (v > acc->max) acc->max = v;
    if (v < acc->min) acc->min = v;
  }
}

}  // namespace

Kernel PlainKernel(DType t) {
  switch (t) {
    case DType::kFloat8E4M3FN: return Float8Loop<DType::kFloat8E4M3FN>;
    case DType::kFloat8E5M2: return Float8Loop<DType::kFloat8E5M2>;
    case DType::kFloat8E4M3FNUZ: return Float8Loop<DType::kFloat8E4M3FNUZ>;
    case DType::kFloat8E5M2FNUZ: return Float8Loop<DType::kFloat8E5M2FNUZ>;
    case DType::kFloat8E8M0FNU: return Float8Loop<DType::kFloat8E8M0FNU>;
    case DType::kComplex32: return ComplexHalfLoop;
    case DType::kComplex64: return ComplexLoop<float>;
    case DType::kComplex128: return ComplexLoop<double>;
    default: return nullptr;
  }
}

const StatsTable* ScalarKernels() {
  static const StatsTable table = [] {
    StatsTable t{"scalar", {}, {}};
    for (size_t i = 0; i < static_cast<size_t>(DType::kUnknown); ++i)
      t.by_dtype[i] = PlainKernel(static_cast<DType>(i));
    const auto set = [&](DType d, Kernel k) { t.by_dtype[static_cast<size_t>(d)] = k; };
    set(DType::kFloat32, FloatLoop<float>);
    set(DType::kFloat64, FloatLoop<double>);
    set(DType::kFloat16, Float16Loop<HalfToFloat>);
    set(DType::kBFloat16, Float16Loop<BFloatToFloat>);
    set(DType::kInt8, SignedLoop<int8_t>);
    set(DType::kInt16, SignedLoop<int16_t>);
    set(DType::kInt32, SignedLoop<int32_t>);
    set(DType::kInt64, SignedLoop<int64_t>);
    set(DType::kUInt8, UnsignedLoop<uint8_t>);
    set(DType::kUInt16, UnsignedLoop<uint16_t>);
    set(DType::kUInt32, UnsignedLoop<uint32_t>);
    set(DType::kUInt64, UnsignedLoop<uint64_t>);
    set(DType::kBool, BoolLoop);
    return t;
  }();
  return &table;
}

}  // namespace msprobe::stats
