#include "tensor/kernels/finfo.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/text.h"

namespace msprobe {
namespace {

struct Alias {
  std::string_view name;
  DType type;
};

// torch's short names, and numpy's for bool.
constexpr Alias kAliases[] = {
    {"float", DType::kFloat32},      {"double", DType::kFloat64},  {"half", DType::kFloat16},
    {"long", DType::kInt64},         {"int", DType::kInt32},       {"short", DType::kInt16},
    {"bool_", DType::kBool},         {"chalf", DType::kComplex32}, {"cfloat", DType::kComplex64},
    {"cdouble", DType::kComplex128},
};

}  // namespace

size_t ElementSize(DType t) { return InfoOf(t).size; }
bool IsFloating(DType t) { return InfoOf(t).kind == NumberKind::kFloat; }
bool IsInteger(DType t) { return InfoOf(t).kind == NumberKind::kInteger; }
bool IsComplex(DType t) { return InfoOf(t).kind == NumberKind::kComplex; }
std::string_view DTypeName(DType t) { return InfoOf(t).name; }

double NearestOf(DType t, double v) {
  const FInfo& info = InfoOf(t);
  if (info.digits == 0 || v == 0 || !std::isfinite(v)) return v;
  const int step = std::max(std::ilogb(v), info.least_power) - info.fraction_bits();
  const double out = std::ldexp(std::nearbyint(std::ldexp(v, -step)), step);
  return std::fabs(out) > info.largest ? std::copysign(std::numeric_limits<double>::infinity(), v) : out;
}

double UlpAt(double v, DType t) {
  const FInfo& info = InfoOf(t);
  if (info.digits == 0) return 1;
  const int power = v == 0 || !std::isfinite(v) ? info.least_power : std::max(std::ilogb(v), info.least_power);
  return std::ldexp(1.0, power - info.fraction_bits());
}

DType ParseDType(std::string_view name) {
  if (const size_t dot = name.rfind('.'); dot != std::string_view::npos) {
    const std::string_view framework = name.substr(0, dot);
    if (framework != "torch" && framework != "mindspore" && framework != "numpy") return DType::kUnknown;
    name.remove_prefix(dot + 1);
  }
  for (const FInfo& info : dtype_table::kTable) {
    if (EqualsNoCase(info.name, name)) return info.type;
  }
  for (const Alias& alias : kAliases) {
    if (EqualsNoCase(alias.name, name)) return alias.type;
  }
  return DType::kUnknown;
}

}  // namespace msprobe
