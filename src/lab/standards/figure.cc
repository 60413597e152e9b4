#include "lab/standards/figure.h"

#include <array>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "base/text.h"
#include "tensor/kernels/finfo.h"

namespace msprobe {
namespace {

constexpr int kDigits = 14;
// numpy 2 shows other magnitudes with an exponent.
constexpr double kSmallestPlain = 1e-4, kLargestPlainSingle = 1e6, kLargestPlainHalf = 1e3;

/// The fewest significant digits, in scientific form, that round to the same value of `width`.
std::string ShortestScientific(double v, Width width) {
  std::array<char, 64> buffer;
  if (width == Width::kSingle) {
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), static_cast<float>(v),
                                   std::chars_format::scientific);
    return std::string(buffer.data(), end.ptr);
  }
  for (int digits = 0; digits < 8; ++digits) {
    const auto end =
        std::to_chars(buffer.data(), buffer.data() + buffer.size(), v, std::chars_format::scientific, digits);
    std::string text(buffer.data(), end.ptr);
    if (RoundToHalf(std::strtod(text.c_str(), nullptr)) == v) return text;
  }
  return std::string();
}

/// As str() of a numpy scalar.
std::string ScalarText(double v, Width width) {
  if (!std::isfinite(v) || v == 0) return PyRepr(v);
  std::string text = ShortestScientific(v, width);
  const double size = std::fabs(v);
  if (size < kSmallestPlain || size >= (width == Width::kSingle ? kLargestPlainSingle : kLargestPlainHalf)) return text;
  return PyRepr(std::strtod(text.c_str(), nullptr));
}

}  // namespace

double RoundToHalf(double v) { return NearestOf(DType::kFloat16, v); }

std::string LabFigure::Text() const {
  switch (kind) {
    case Kind::kBlank: return " ";
    case Kind::kWhole: return std::to_string(static_cast<int64_t>(value));
    case Kind::kHalf: return ScalarText(value, Width::kHalf);
    case Kind::kSingle: return ScalarText(value, Width::kSingle);
    case Kind::kDouble: break;
  }
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::string out;
  AppendFixed(out, value, kDigits);
  return out;
}

}  // namespace msprobe
