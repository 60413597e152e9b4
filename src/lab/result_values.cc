#include "lab/result_values.h"

#include <bit>
#include <cstdint>
#include <cstring>

#include "tensor/kernels/finfo.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

double HalfOf(uint16_t bits) {
  const uint64_t power = bits >> 10 & 31, fraction = bits & 1023, sign = uint64_t{bits} >> 15 << 63;
  if (power == 0) return std::bit_cast<double>(sign | std::bit_cast<uint64_t>(static_cast<double>(fraction) * 0x1p-24));
  // The exponent of float64 has 1008 more; that of infinities and NaN is all ones.
  return std::bit_cast<double>(sign | (power == 31 ? 2047 : power + 1008) << 52 | fraction << 42);
}

template <typename T, typename To>
std::vector<double> Decoded(std::string_view bytes, To&& to) {
  std::vector<double> out(bytes.size() / sizeof(T));
  for (size_t i = 0; i < out.size(); ++i) {
    T v;
    std::memcpy(&v, bytes.data() + i * sizeof(T), sizeof(T));
    out[i] = to(v);
  }
  return out;
}

/// What lies as the machine wants it is written once, without zeros before.
template <typename T>
std::vector<double> Widened(std::string_view bytes) {
  if (reinterpret_cast<uintptr_t>(bytes.data()) % alignof(T) != 0)
    return Decoded<T>(bytes, [](T v) { return static_cast<double>(v); });
  const T* const first = reinterpret_cast<const T*>(bytes.data());
  return std::vector<double>(first, first + bytes.size() / sizeof(T));
}

}  // namespace

DType RealTypeOf(DType t) { return InfoOf(t).real; }

std::vector<double> FloatsOf(std::string_view bytes, DType dtype) {
  const DType real = RealTypeOf(dtype);
  if (real == DType::kFloat64) return Widened<double>(bytes);
  if (real == DType::kFloat32) return Widened<float>(bytes);
  if (real == DType::kFloat16) return Decoded<uint16_t>(bytes, HalfOf);
  if (real == DType::kBFloat16)
    return Decoded<uint16_t>(bytes, [](uint16_t v) { return std::bit_cast<float>(uint32_t{v} << 16); });
  std::vector<double> out(ElementSize(real) == 0 ? 0 : bytes.size() / ElementSize(real));
  if (!metrics::ToDoubles(real, bytes.data(), out.size(), out.data())) out.clear();
  return out;
}

ResultNumbers NumbersAt(std::string_view bytes, DType dtype) {
  const bool fits = reinterpret_cast<uintptr_t>(bytes.data()) % alignof(double) == 0;
  if (RealTypeOf(dtype) != DType::kFloat64 || !fits) return ResultNumbers(FloatsOf(bytes, dtype));
  return {reinterpret_cast<const double*>(bytes.data()), bytes.size() / sizeof(double)};
}

}  // namespace msprobe
