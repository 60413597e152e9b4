// The figures of element types, as torch.finfo and torch.iinfo give them. This is the only table of them: no room keeps
// numbers of a dtype of its own, and Python asks for these (msprobe._core.dtype_figures).
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <string_view>

#include "tensor/kernels/dtype.h"

namespace msprobe {

enum class NumberKind : uint8_t { kFloat, kInteger, kBool, kComplex, kNone };

constexpr double PowerOfTwo(int power) { return __builtin_bit_cast(double, static_cast<uint64_t>(1023 + power) << 52); }

/// A complex type has the figures of its parts.
struct FInfo {
  DType type;
  std::string_view name;
  uint8_t size;  // bytes of an element
  NumberKind kind;
  DType real;       // the type of a complex number's parts; else the type itself
  int digits;       // of the significand with its leading bit; 0: numbers of this type are equal or not
  int least_power;  // 2^least_power is the smallest normal number
  double largest, lowest;

  constexpr int bits() const { return 8 * size; }
  constexpr int fraction_bits() const { return digits > 0 ? digits - 1 : 0; }
  /// The distance from 1 to the next number; 0 without digits.
  constexpr double eps() const { return digits > 0 ? PowerOfTwo(1 - digits) : 0; }
  /// What rounding to nearest changes at most, relative to the number.
  constexpr double unit() const { return eps() / 2; }
  constexpr double smallest_normal() const { return digits > 0 ? PowerOfTwo(least_power) : 0; }
};

namespace dtype_table {

constexpr FInfo Float(DType type, std::string_view name, uint8_t size, int digits, int least_power, double largest,
                      double lowest) {
  return {type, name, size, NumberKind::kFloat, type, digits, least_power, largest, lowest};
}
constexpr FInfo Float(DType type, std::string_view name, uint8_t size, int digits, int least_power, double largest) {
  return Float(type, name, size, digits, least_power, largest, -largest);
}
constexpr FInfo Parts(DType type, std::string_view name, const FInfo& of) {
  return {
      type,       name,     static_cast<uint8_t>(2 * of.size), NumberKind::kComplex, of.type, of.digits, of.least_power,
      of.largest, of.lowest};
}
template <typename T>
constexpr FInfo Whole(DType type, std::string_view name) {
  return {type,
          name,
          sizeof(T),
          NumberKind::kInteger,
          type,
          0,
          0,
          static_cast<double>(std::numeric_limits<T>::max()),
          static_cast<double>(std::numeric_limits<T>::min())};
}

constexpr FInfo kSingle = Float(DType::kFloat32, "float32", 4, 24, -126, std::numeric_limits<float>::max());
constexpr FInfo kDouble = Float(DType::kFloat64, "float64", 8, 53, -1022, std::numeric_limits<double>::max());
constexpr FInfo kHalf = Float(DType::kFloat16, "float16", 2, 11, -14, 65504);

// In the order of DType.
constexpr std::array<FInfo, static_cast<size_t>(DType::kUnknown) + 1> kTable = {
    kSingle,
    kDouble,
    kHalf,
    Float(DType::kBFloat16, "bfloat16", 2, 8, -126, 0x1.fep127),
    Float(DType::kFloat8E4M3FN, "float8_e4m3fn", 1, 4, -6, 448),
    Float(DType::kFloat8E5M2, "float8_e5m2", 1, 3, -14, 57344),
    Float(DType::kFloat8E4M3FNUZ, "float8_e4m3fnuz", 1, 4, -7, 240),
    Float(DType::kFloat8E5M2FNUZ, "float8_e5m2fnuz", 1, 3, -15, 57344),
    Float(DType::kFloat8E8M0FNU, "float8_e8m0fnu", 1, 1, -127, 0x1p127, 0x1p-127),  // powers of two without a sign
    Whole<int8_t>(DType::kInt8, "int8"),
    Whole<int16_t>(DType::kInt16, "int16"),
    Whole<int32_t>(DType::kInt32, "int32"),
    Whole<int64_t>(DType::kInt64, "int64"),
    Whole<uint8_t>(DType::kUInt8, "uint8"),
    Whole<uint16_t>(DType::kUInt16, "uint16"),
    Whole<uint32_t>(DType::kUInt32, "uint32"),
    Whole<uint64_t>(DType::kUInt64, "uint64"),
    FInfo{DType::kBool, "bool", 1, NumberKind::kBool, DType::kBool, 0, 0, 1, 0},
    Parts(DType::kComplex32, "complex32", kHalf),
    Parts(DType::kComplex64, "complex64", kSingle),
    Parts(DType::kComplex128, "complex128", kDouble),
    FInfo{DType::kUnknown, "", 0, NumberKind::kNone, DType::kUnknown, 0, 0, 0, 0},
};

constexpr bool InOrder() {
  for (size_t i = 0; i < kTable.size(); ++i) {
    if (kTable[i].type != static_cast<DType>(i)) return false;
  }
  return true;
}
static_assert(InOrder());

}  // namespace dtype_table

/// Of kUnknown: kind kNone, and nothing else is known.
constexpr const FInfo& InfoOf(DType t) {
  return dtype_table::kTable[t < DType::kUnknown ? static_cast<size_t>(t) : dtype_table::kTable.size() - 1];
}

/// The number of the type nearest to `v`, ties to even; infinite beyond its range, and `v` where it has no digits.
double NearestOf(DType t, double v);

/// The distance of the neighbours of `v` in the type; 1 for integers.
double UlpAt(double v, DType t);

}  // namespace msprobe
