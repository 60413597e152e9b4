#include "weights/convert/out_weight.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "base/message.h"
#include "tensor/kernels/finfo.h"
#include "tensor/kernels/metrics_sources.h"

namespace msprobe {
namespace {

constexpr int64_t kPiece = int64_t{1} << 20;  // elements

uint16_t BFloatBits(double value) {
  return static_cast<uint16_t>(__builtin_bit_cast(uint32_t, static_cast<float>(NearestOf(DType::kBFloat16, value))) >>
                               16);
}

uint16_t HalfBits(double value) {
  const double rounded = NearestOf(DType::kFloat16, value);
  const auto sign = static_cast<uint16_t>(std::signbit(value) ? 0x8000 : 0);
  constexpr int kMantissa = 10, kBias = 15, kSpecial = 31;
  const auto of = [&](int exponent, double mantissa) {
    return static_cast<uint16_t>(sign | (exponent << kMantissa) | static_cast<int>(std::ldexp(mantissa, kMantissa)));
  };
  if (std::isnan(rounded)) return of(kSpecial, 0.5);
  if (std::isinf(rounded)) return of(kSpecial, 0);
  const double most = std::fabs(rounded);
  const FInfo& half = InfoOf(DType::kFloat16);
  if (most < half.smallest_normal()) return of(0, most / half.smallest_normal());
  int exponent = 0;
  const double mantissa = 2 * std::frexp(most, &exponent);
  return of(exponent - 1 + kBias, mantissa - 1);
}

template <typename T>
void Store(T value, char* to, size_t i) {
  std::memcpy(to + i * sizeof value, &value, sizeof value);
}

/// The bytes of a tensor that lies in one stretch; null for others.
const char* Stretch(const WeightTensor& t) {
  if (t.blocks.size() != 1) return nullptr;
  const WeightBlock& block = t.blocks[0];
  int64_t count = 1;
  for (size_t d = block.size.size(); d-- > 0; count *= block.size[d]) {
    if (block.size[d] != 1 && block.strides[d] != count) return nullptr;
  }
  return count == t.elements() ? static_cast<const char*>(block.data) : nullptr;
}

}  // namespace

bool FromDoubles(DType dtype, const double* from, size_t n, char* to) {
  for (size_t i = 0; i < n; ++i) {
    switch (dtype) {
      case DType::kFloat64: Store(from[i], to, i); break;
      case DType::kFloat32: Store(static_cast<float>(from[i]), to, i); break;
      case DType::kBFloat16: Store(BFloatBits(from[i]), to, i); break;
      case DType::kFloat16: Store(HalfBits(from[i]), to, i); break;
      default: return false;
    }
  }
  return true;
}

Status StreamElements(const Checkpoint& from, const OutWeight& weight,
                      const std::function<Status(std::string_view)>& take) {
  const WeightTensor& t = weight.tensor;
  const size_t element = ElementSize(t.dtype), out_element = ElementSize(weight.dtype);
  const bool plain = weight.dtype == t.dtype && t.plus == 0;
  const char* stretch = plain ? Stretch(t) : nullptr;
  std::vector<char> bytes, converted;
  std::vector<double> values;
  for (int64_t at = 0; at < t.elements(); at += kPiece) {
    const int64_t end = std::min(t.elements(), at + kPiece);
    const auto n = static_cast<size_t>(end - at);
    if (stretch) {
      const char* begin = stretch + static_cast<size_t>(at) * element;
      MSP_RETURN_IF_ERROR(take({begin, n * element}));
      from.Release(t.blocks[0].file, begin, n * element);
      continue;
    }
    bytes.resize(n * element);
    GatherElements(t, at, end, bytes.data());
    if (plain) {
      MSP_RETURN_IF_ERROR(take({bytes.data(), bytes.size()}));
      continue;
    }
    values.resize(n);
    converted.resize(n * out_element);
    const bool known = metrics::ToDoubles(t.dtype, bytes.data(), n, values.data());
    if (t.plus != 0) {  // would make zeros of -0.0 positive
      for (double& value : values) value += t.plus;
    }
    if (!known || !FromDoubles(weight.dtype, values.data(), n, converted.data()))
      return BadInput(Msg("{} cannot be converted to {}: leave its type as it is", t.label(), DTypeName(weight.dtype)));
    MSP_RETURN_IF_ERROR(take({converted.data(), converted.size()}));
  }
  for (const WeightBlock& block : t.blocks) from.Release(block);
  return OkStatus();
}

}  // namespace msprobe
